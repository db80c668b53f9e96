// Matrix products: everything that decides how a library is called.
#pragma once

#include <tenon/conformance/case.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/shape.h>

namespace tenon::conformance {

inline List call_linear(const json&, const List& in) { return {linear(in[0], in[1], at(in, 2))}; }
inline List call_linear_relu(const json&, const List& in) {
  return {linear_relu(in[0], in[1], at(in, 2))};
}
// Operands that are views in ways that matter to a library: "transposed", "heads", "batch_last",
// "cut".
inline List call_matmul_of_views(const json& a, const List& in) {
  const std::string view = a.at("view");
  if (view == "transposed") return {matmul(in[0].transpose(-1, -2), in[1].transpose(-1, -2))};
  if (view == "heads")
    return {matmul(in[0].transpose(1, 2), in[1].transpose(1, 2).transpose(2, 3))};
  if (view == "batch_last") return {matmul(permute(in[0], {2, 0, 1}), in[1])};
  return {matmul(in[0].select(2, 1), in[1].select(1, 0))};
}
inline List call_expanded_matmul(const json& a, const List& in) {
  const auto expanded = [&](const Tensor& x, const char* name) {
    return a.contains(name) ? x.expand(shape_of(a[name])) : x;
  };
  return {matmul(expanded(in[0], "left"), expanded(in[1], "right"))};
}

inline std::vector<Variant> products() {
  std::vector<Variant> variants;
  const auto add = [&](const Shape& a, const Shape& b) {
    variants.push_back({"", {In(a), In(b)}});
  };
  for (auto& [a, b] : std::initializer_list<std::pair<Shape, Shape>>{
           {{2, 3}, {3, 4}},
           {{5, 2, 3}, {3, 4}},
           {{2, 2, 3}, {2, 3, 4}},
           {{2, 3}, {2, 3, 4}},
           {{2, 1, 2, 3}, {2, 3, 1}},
           {{1, 3}, {3, 1}},
           {{2, 5, 1, 3}, {2, 1, 3, 2}},
           {{3}, {3}},
           {{3}, {3, 4}},
           {{4, 3}, {3}},
           {{2, 4, 3}, {3}},
           {{3}, {2, 3, 4}},
           // Sizes of one, primes, beyond a vector's width.
           {{1, 1}, {1, 1}},
           {{1, 9}, {9, 1}},
           {{6, 1}, {1, 4}},
           {{1, 8}, {8, 5}},
           {{5, 8}, {8, 1}},
           {{1, 1}, {1, 7}},
           {{7, 1}, {1, 1}},
           {{64, 33}, {33, 17}},
           {{9}, {9, 4}},
           {{2, 3, 4, 5}, {2, 3, 5, 6}},
           {{4, 5}, {6, 5, 3}},
           {{6, 4, 5}, {5, 3}},
           {{3, 1, 4, 5}, {2, 5, 6}},
           {{7, 1, 5}, {7, 5, 2}},
           // Nothing to add up, and no results.
           {{3, 0}, {0, 4}},
           {{2, 3, 0}, {2, 0, 4}},
           {{0, 3}, {3, 4}},
           {{2, 3}, {3, 0}},
           {{0, 2, 3}, {0, 3, 4}},
           {{129, 80}, {80, 131}}})
    add(a, b);
  return variants;
}
inline std::vector<Variant> layers() {
  return {{"", {{6, 5}, {4, 5}, {4}}},        {"", {{6, 5}, {4, 5}, absent()}},
          {"", {{2, 3, 5}, {4, 5}, {4}}},     {"", {{5}, {4, 5}, {4}}},
          {"", {{2, 1, 2, 3}, {4, 3}, {4}}},  {"", {{37, 33}, {65, 33}, {65}}},
          {"", {{3, 0}, {4, 0}, {4}}},        {"", {{0, 3}, {2, 3}, absent()}},
          {"", {{129, 80}, {131, 80}, {131}}}};
}
inline std::vector<Variant> views_of_factors() {
  std::vector<Variant> variants = {{"{'view': 'transposed'}", {{3, 5, 4}, {3, 6, 5}}},
                                   {"{'view': 'transposed'}", {{5, 4}, {6, 5}}},
                                   {"{'view': 'heads'}", {{2, 4, 3, 5}, {2, 4, 3, 5}}},
                                   {"{'view': 'heads'}", {{1, 2, 2, 3}, {1, 2, 2, 3}}},
                                   {"{'view': 'batch_last'}", {{4, 5, 3}, {3, 5, 2}}}};
  // A column and a row of larger tensors: strides that are no leading dimension of a size above 1.
  for (auto [m, k, n] : std::initializer_list<std::array<int64_t, 3>>{
           {1, 1, 1}, {1, 9, 1}, {6, 1, 4}, {1, 8, 5}, {5, 8, 1}, {7, 1, 1}, {64, 33, 17}})
    variants.push_back({"{'view': 'cut'}", {In(Shape{m, k, 3}), In(Shape{k, 2, n})}});
  return variants;
}

inline std::vector<Line> linalg_cases() {
  constexpr Tolerance tolerance = {2e-5, 1e-12, 4e-3, 3e-2};
  const char* const views = "the first line has it";
  // clang-format off
  return {
      {"matmul", two(matmul), kReals, products(), tolerance, {.types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary}},
      {"matmul", two(matmul), kReals, {{"", {{5, 7}, {7, 3}}}}, tolerance, {.difference = 0, .types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary, .no_reference = views, .every_layout = true}},
      {"matmul", call_matmul_of_views, kReals, views_of_factors(), tolerance, {.types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary, .no_reference = views}},
      {"matmul", call_expanded_matmul, kReals,
       {{"{'right': [6, 5, 3]}", {{6, 4, 5}, {1, 5, 3}}}, {"{'left': [6, 4, 5]}", {{1, 4, 5}, {6, 5, 3}}},
        {"{'left': [2, 3, 4, 5]}", {{1, 3, 4, 5}, {2, 3, 5, 6}}}, {"{'left': [2, 3, 4, 5]}", {{2, 1, 4, 5}, {2, 3, 5, 6}}},
        {"{'left': [2, 2, 3]}", {{1, 2, 3}, {2, 3, 2}}}},
       tolerance, {.types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary, .no_reference = views}},
      {"mm", two(mm), kReals, {{"", {{2, 3}, {3, 4}}}, {"", {{31, 7}, {7, 17}}}, {"", {{129, 80}, {80, 131}}}}, tolerance, {.types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary, .no_reference = "matmul of matrices"}},
      {"bmm", two(bmm), kReals, {{"", {{2, 2, 3}, {2, 3, 2}}}, {"", {{5, 7, 3}, {5, 3, 11}}}, {"", {{5, 65, 33}, {5, 33, 67}}}}, tolerance, {.types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary}},
      {"linear", call_linear, kReals, layers(), tolerance, {.types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary}},
      {"linear_relu", call_linear_relu, kReals, layers(), tolerance, {.types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary, .no_reference = "relu of linear in one call; no function of PyTorch's"}},
  };
  // clang-format on
}

}  // namespace tenon::conformance
