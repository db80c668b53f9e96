// The reductions: every set of dimensions of many shapes.
#pragma once

#include <tenon/conformance/case.h>
#include <tenon/core/ops/reduction.h>

namespace tenon::conformance {

// Every set of dimensions but the empty one; `nothing`: also shapes of which no element is left.
inline std::vector<Variant> sets_of_dims(bool nothing) {
  std::vector<Variant> variants;
  for (const Shape& shape :
       {Shape{}, Shape{1}, Shape{7}, Shape{0}, Shape{3, 0, 2}, Shape{5, 3}, Shape{1, 8},
        Shape{2, 3, 4}, Shape{4, 1, 6, 5}, Shape{3, 2, 8, 12}, Shape{2, 3, 2, 2, 3},
        // Groups of lanes, blocks, and outputs that several blocks share; with and without a rest
        // behind whole vectors; many short rows.
        Shape{3, 31}, Shape{20, 129}, Shape{2, 4097}, Shape{20000}, Shape{20001}, Shape{5000, 3},
        Shape{5000, 4}, Shape{300, 40}, Shape{2, 900, 8}, Shape{3000, 10}, Shape{700, 33}}) {
    if (!nothing && shape.numel() == 0) continue;
    const int sets = shape.empty() ? 2 : 1 << shape.size();
    for (int set = 1; set < sets; ++set) {
      std::string dims;
      for (size_t d = 0; d < shape.size(); ++d)
        if (set >> d & 1) dims += (dims.empty() ? "" : ", ") + std::to_string(d);
      const bool keep = set % 2 == 0;
      variants.push_back(
          {shape.empty() ? ""
                         : "{'dim': [" + dims + "], 'keepdim': " + (keep ? "true" : "false") + "}",
           {In(shape)}});
    }
  }
  return variants;
}
// `args` with a further argument: "'p': 3.0".
inline std::vector<Variant> and_argument(std::vector<Variant> variants, const std::string& more) {
  for (auto& v : variants)
    v.args =
        v.args.empty() ? "{" + more + "}" : v.args.substr(0, v.args.size() - 1) + ", " + more + "}";
  return variants;
}
inline std::vector<Variant> single_dims() {
  std::vector<Variant> variants;
  for (const Shape& shape : {Shape{1}, Shape{9}, Shape{5, 7}, Shape{1000, 3}, Shape{3, 1000},
                             Shape{4, 5, 6}, Shape{20001}, Shape{2, 900, 5}})
    for (size_t d = 0; d < shape.size(); ++d)
      variants.push_back(
          {"{'dim': " + std::to_string(d) + ", 'keepdim': " + (d % 2 ? "true" : "false") + "}",
           {steps(shape)}});
  variants.push_back({"", {steps({5, 7})}});
  variants.push_back({"{'dim': 0, 'keepdim': false}", {{300, 40}}});  // with NaN and infinities
  variants.push_back({"{'dim': 1, 'keepdim': false}", {{300, 40}}});
  return variants;
}

inline List call_var(const json& a, const List& in) {
  return {var(in[0], dims_of(a), a.value("unbiased", true) ? 1 : 0, keeps_dims(a))};
}
inline List call_std(const json& a, const List& in) {
  return {tenon::std(in[0], dims_of(a), a.value("unbiased", true) ? 1 : 0, keeps_dims(a))};
}
inline List call_norm(const json& a, const List& in) {
  const double p = !a.at("p").is_string() ? a.at("p").get<double>()
                   : a.at("p") == "inf"   ? HUGE_VAL
                                          : -HUGE_VAL;
  return {norm(in[0], p, dims_of(a), keeps_dims(a))};
}
template <Tensor (*whole)(const Tensor&), Tensor (*along_dim)(const Tensor&, int64_t, bool)>
List call_argument(const json& a, const List& in) {
  return {a.contains("dim") ? along_dim(in[0], a.at("dim"), keeps_dims(a)) : whole(in[0])};
}

inline std::vector<Line> reduction_cases() {
  const auto every = sets_of_dims(true), some = sets_of_dims(false), places = single_dims();
  constexpr Types ints_too = kReals | kIntegers;
  // clang-format off
  return {
      {"sum", over_dims(sum), ints_too | kBool, every, kSums, {.types_of_cpu = kHalves, .values = Values::sums}},
      {"mean", over_dims(mean), kReals, every, kSums, {.types_of_cpu = kHalves, .values = Values::sums}},
      {"prod", over_dims(prod), ints_too, every, kSums, {.difference = 1e-5, .types_of_cpu = kHalves, .values = Values::near_one}},
      {"amax", over_dims(amax), ints_too, some, {.types_of_cpu = kHalves}},
      {"amin", over_dims(amin), ints_too, some, {.types_of_cpu = kHalves}},
      {"var", call_var, kReals, every, kLongSums, {.difference = 1e-5, .types_of_cpu = kHalves, .values = Values::sums}},
      {"var", call_var, kReals, and_argument(some, "'unbiased': false"), kLongSums, {.difference = 1e-5, .types_of_cpu = kHalves, .values = Values::sums, .no_reference = "the first line has it"}},
      {"std", call_std, kReals, and_argument(some, "'unbiased': false"), kLongSums, {.difference = 1e-4, .types_of_cpu = kHalves, .values = Values::sums, .distinct = true}},
      {"norm", call_norm, kReals, and_argument(some, "'p': 2.0"), kLongSums, {.difference = 1e-5, .types_of_cpu = kHalves, .values = Values::sums}},
      {"norm", call_norm, kReals, and_argument(some, "'p': 3.0"), kLongSums, {.difference = 1e-5, .types_of_cpu = kHalves, .values = Values::ordinary, .no_reference = "the first line has it"}},
      {"norm", call_norm, kReals, and_argument(some, "'p': 1.0"), kLongSums, {.types_of_cpu = kHalves, .values = Values::sums, .no_reference = "the first line has it"}},
      {"norm", call_norm, kReals, and_argument(some, "'p': 'inf'"), kLongSums, {.types_of_cpu = kHalves, .values = Values::sums, .no_reference = "the first line has it"}},
      {"norm", call_norm, kReals, and_argument(some, "'p': 0.0"), kLongSums, {.types_of_cpu = kHalves, .values = Values::ordinary, .no_reference = "the first line has it"}},
      {"norm", call_norm, kReals, and_argument(some, "'p': '-inf'"), kLongSums, {.types_of_cpu = kHalves, .values = Values::sums, .no_reference = "the first line has it"}},
      {"logsumexp", over_dims(logsumexp), kReals, some, kSums, {.types_of_cpu = kHalves, .values = Values::sums}},
      {"any", over_dims(any), kAll, every, {.difference = 0}},
      {"all", over_dims(all), kAll, every, {.difference = 0}},
      {"argmax", call_argument<argmax, argmax>, ints_too, places, {.difference = 0, .types_of_cpu = kHalves}},
      {"argmin", call_argument<argmin, argmin>, ints_too, places, {.difference = 0, .types_of_cpu = kHalves}},
  };
  // clang-format on
}

}  // namespace tenon::conformance
