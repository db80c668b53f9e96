#include <array>
#include <cmath>
#include <span>

#include <fmt/core.h>

#include <tenon/conformance/bytes.h>
#include <tenon/conformance/case.h>

namespace tenon::conformance {

namespace {
template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
}  // namespace

std::ptrdiff_t List::checked(size_t i) const {
  if (i >= size()) throw ValueError(fmt::format("tensor {} of {} was asked for", i, size()));
  return static_cast<std::ptrdiff_t>(i);
}

List Call::operator()(const json& args, const List& in) const {
  return std::visit(Overloaded{
                        [&](General f) { return f(args, in); },
                        [&](Unary f) { return List{f(in[0])}; },
                        [&](Binary f) { return List{f(in[0], in[1])}; },
                        [&](OverDims f) { return List{f(in[0], dims_of(args), keeps_dims(args))}; },
                        [&](AlongDim f) { return List{f(in[0], args.at("dim"))}; },
                        [&](WithNumber f) { return List{f(in[0], number_of(args.at("number")))}; },
                        [&](NumberFirst f) { return List{f(number_of(args.at("number")), in[0])}; },
                    },
                    form_);
}

Shape shape_of(const json& list) {
  if (list.is_number()) return {list.get<int64_t>()};
  const auto sizes = list.get<std::vector<int64_t>>();
  return Shape(std::span<const int64_t>(sizes));
}

Pair pair_of(const json& list) {
  const auto sizes = list.get<std::array<int64_t, 2>>();
  return {sizes[0], sizes[1]};
}

Shape dims_of(const json& args) {
  return args.contains("dim") ? shape_of(args.at("dim")) : Shape{};
}

Number number_of(const json& value) {
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_string()) return std::nan("");
  return value.get<double>();
}

Tensor like(const json& values, const Tensor& x) {
  const auto numbers = values.get<std::vector<double>>();
  if (x.dtype() == f64) return tensor(numbers, numbers.size(), {.device = x.device()});
  const std::vector<float> rounded(numbers.begin(), numbers.end());
  return copied_to(tensor(rounded, rounded.size(), {.dtype = x.dtype(), .device = Device()}),
                   x.device());
}

double Tolerance::of(DType t) const {
  switch (t) {
    case DType::f32:
      return f32;
    case DType::f64:
      return f64;
    case DType::f16:
      return f16;
    case DType::bf16:
      return bf16;
    default:
      return 0;
  }
}

std::vector<Variant> shapes_of_one() {
  return {{"", {{}}},
          {"", {{1}}},
          {"", {{7}}},
          {"", {{2, 5}}},
          {"", {{0, 3}}},
          {"", {{1031}}},
          {"", {{2048}}},
          {"", {{3, 33, 65}}},
          {"", {{64, 96}}},
          {"", {{2, 5, 28, 4}}},
          {"", {{2, 2, 2, 2, 2, 2, 2, 3}}}};
}

std::vector<Variant> shapes_of_two() {
  return {{"", {{}, {}}},
          {"", {{1}, {7}}},
          {"", {{2, 1, 3}, {4, 1}}},
          {"", {{0, 3}, {1, 3}}},
          {"", {{1031}, {1031}}},
          {"", {{5, 1000}, {5, 1000}}},
          {"", {{3, 33, 65}, {3, 33, 65}}},
          {"", {{64, 96}, {1, 96}}},
          {"", {{64, 96}, {64, 1}}},
          {"", {{2, 5, 28, 4}, {2, 5, 28, 4}}},
          {"", {{2, 2, 2, 2, 2, 2, 2, 3}, {2, 2, 2, 2, 2, 2, 2, 3}}}};
}

}  // namespace tenon::conformance
