// Scans, sorting and what is made of them: lines of the family of reductions.
#pragma once

#include <tenon/conformance/case.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/scan.h>
#include <tenon/core/ops/shape.h>
#include <tenon/core/ops/sort.h>

namespace tenon::conformance {

inline List listed(const ValuesIndices& y) { return {y.values, y.indices}; }
inline List listed(const std::pair<Tensor, Tensor>& y) { return {y.first, y.second}; }

template <Tensor (*f)(const Tensor&, int64_t, std::optional<DType>)>
List call_running(const json& a, const List& in) {
  return {f(in[0], a.at("dim"), std::nullopt)};
}
template <ValuesIndices (*f)(const Tensor&, int64_t)>
List call_running_extreme(const json& a, const List& in) {
  return listed(f(in[0], a.at("dim")));
}
inline List call_diff(const json& a, const List& in) {
  return {diff(in[0], a.value("n", int64_t{1}), a.value("dim", int64_t{-1}), at(in, 1), at(in, 2))};
}
inline List call_sort(const json& a, const List& in) {
  return listed(sort(in[0], a.value("dim", int64_t{-1}), a.value("descending", false)));
}
inline List call_argsort(const json& a, const List& in) {
  return {argsort(in[0], a.value("dim", int64_t{-1}), a.value("descending", false))};
}
inline List call_topk(const json& a, const List& in) {
  return listed(topk(in[0], a.at("k"), a.value("dim", int64_t{-1}), a.value("largest", true)));
}
inline List call_kthvalue(const json& a, const List& in) {
  return listed(kthvalue(in[0], a.at("k"), a.value("dim", int64_t{-1}), keeps_dims(a)));
}
template <Tensor (*whole)(const Tensor&), ValuesIndices (*along_dim)(const Tensor&, int64_t, bool)>
List call_choice(const json& a, const List& in) {
  if (!a.contains("dim")) return {whole(in[0])};
  return listed(along_dim(in[0], a.at("dim"), keeps_dims(a)));
}
inline List call_mode(const json& a, const List& in) {
  return listed(mode(in[0], a.value("dim", int64_t{-1}), keeps_dims(a)));
}
inline std::optional<int64_t> dim_if_given(const json& a) {
  return a.contains("dim") ? std::optional(a.at("dim").get<int64_t>()) : std::nullopt;
}
template <Tensor (*f)(const Tensor&, const Tensor&, std::optional<int64_t>, bool, std::string_view)>
List call_quantile(const json& a, const List& in) {
  const std::string interpolation = a.value("interpolation", "linear");
  // Positive numbers, brought between 0 and 1.
  const Tensor q = a.value("any_q", false) ? in[1] / add(in[1], 1) : in[1];
  return {f(in[0], q, dim_if_given(a), keeps_dims(a), interpolation)};
}
inline List call_unique(const json& a, const List& in) {
  const Unique y = unique(in[0], true, true, true, dim_if_given(a));
  return {y.values, y.inverse, y.counts};
}
inline List call_unique_consecutive(const json& a, const List& in) {
  const Unique y = unique_consecutive(in[0], true, true, dim_if_given(a));
  return {y.values, y.inverse, y.counts};
}
inline List call_searchsorted(const json& a, const List& in) {
  return {searchsorted(sort(in[0]).values, in[1], {.right = a.at("right")})};
}
inline List call_bucketize(const json& a, const List& in) {
  return {bucketize(in[0], sort(in[1]).values, false, a.at("right"))};
}
inline List call_bincount(const json& a, const List& in) {
  return {bincount(in[0], at(in, 1), a.value("minlength", int64_t{0}))};
}
inline List call_histc(const json& a, const List& in) {
  return {histc(in[0], a.at("bins"), a.at("min"), a.at("max"))};
}
inline List call_isin(const json& a, const List& in) {
  return {isin(in[0], in[1], false, a.value("invert", false))};
}
inline List call_aminmax(const json& a, const List& in) {
  return listed(aminmax(in[0], dim_if_given(a), keeps_dims(a)));
}
inline List call_nansum(const json& a, const List& in) {
  return {nansum(in[0], dims_of(a), keeps_dims(a))};
}
inline List call_nanmean(const json& a, const List& in) {
  return {nanmean(in[0], dims_of(a), keeps_dims(a))};
}
inline List call_count_nonzero(const json& a, const List& in) {
  return {count_nonzero(in[0], dims_of(a))};
}
inline List call_var_mean(const json& a, const List& in) {
  return listed(var_mean(in[0], dims_of(a), a.value("correction", int64_t{1}), keeps_dims(a)));
}
inline List call_std_mean(const json& a, const List& in) {
  return listed(std_mean(in[0], dims_of(a), a.value("correction", int64_t{1}), keeps_dims(a)));
}
inline List call_dist(const json& a, const List& in) {
  return {dist(in[0], in[1], a.at("p").is_string() ? HUGE_VAL : a.at("p").get<double>())};
}
inline List call_renorm(const json& a, const List& in) {
  return {renorm(in[0], a.at("p"), a.at("dim"), a.at("maxnorm"))};
}

// Every dimension of lines that are short, long, cut into blocks, and empty.
inline std::vector<Variant> lines_of(Values values, const std::string& more = "") {
  std::vector<Variant> variants;
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{7}, Shape{3, 0, 2}, Shape{5, 3},
                             Shape{2, 3, 4}, Shape{3, 31}, Shape{20, 129}, Shape{70000},
                             Shape{2, 40000}, Shape{3000, 70}, Shape{40000, 3}, Shape{2, 900, 8}}) {
    const std::string rest = more.empty() ? "}" : ", " + more + "}";
    if (shape.empty()) variants.push_back({"{'dim': 0" + rest, {In(shape, values)}});
    for (size_t d = 0; d < shape.size(); ++d)
      variants.push_back({"{'dim': " + std::to_string(d) + rest, {In(shape, values)}});
  }
  return variants;
}
inline std::vector<Variant> joined(std::vector<Variant> a, const std::vector<Variant>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
// Without the lines that are empty.
inline std::vector<Variant> filled_lines(Values values, const std::string& more = "") {
  auto variants = lines_of(values, more);
  std::erase_if(variants, [](const Variant& v) { return v.in[0].shape.numel() == 0; });
  return variants;
}
inline std::vector<Variant> quantiles() {
  std::vector<Variant> variants;
  int turn = 0;
  for (const char* how : {"linear", "lower", "higher", "midpoint", "nearest"}) {
    const std::string with = "'any_q': true, 'interpolation': '" + std::string(how) + "'";
    variants.push_back({"{" + with + ", 'keepdim': " + (turn++ % 2 ? "true" : "false") + "}",
                        {In({2, 3, 4}), constant({})}});
    variants.push_back({"{'dim': 1, " + with + "}", {In({2, 5, 3}), constant({3})}});
    variants.push_back({"{'dim': 0, 'keepdim': true, " + with + "}", {In({7}), constant({2})}});
    variants.push_back({"{'dim': -1, " + with + "}", {In({30, 400}), constant({2})}});
  }
  return variants;
}

inline std::vector<Line> order_cases() {
  const auto any = Values::any, steps_ = Values::steps, sums = Values::sums;
  const auto lines = lines_of(any), ties = filled_lines(steps_);
  const std::vector<Variant> sets = {{"", {{2, 3, 4}}},
                                     {"{'dim': [1]}", {{5, 3}}},
                                     {"{'dim': [0, 2], 'keepdim': true}", {{4, 30, 7}}},
                                     {"{'dim': [0]}", {{400, 33}}}};
  // clang-format off
  return {
      {"cumsum", call_running<cumsum>, kAll, lines_of(sums), kSums, {.values = sums}},
      {"cumprod", call_running<cumprod>, kReals | kIntegers, lines_of(Values::near_one), kLongSums, {.difference = 1e-5, .values = Values::near_one}},
      {"logcumsumexp", along(logcumsumexp), kFloats, lines_of(sums), kSums, {.difference = 1e-5, .values = sums}},
      {"cummax", call_running_extreme<cummax>, kAll, joined(lines, ties), kExact},
      {"cummin", call_running_extreme<cummin>, kAll, joined(lines, ties), kExact},
      {"diff", call_diff, kReals | kIntegers | kBool, {{"{'n': 1, 'dim': 1}", {{3, 5}}}, {"{'n': 2, 'dim': 0}", {{6, 4}}}, {"{'n': 1}", {{2, 3}, {2, 2}, {2, 1}}}, {"{'n': 9, 'dim': 0}", {{5, 2}}}, {"{'n': 3}", {{40, 300}}}}, kSums, {.types_of_cpu = kHalves, .values = Values::ordinary}},
      {"sort", call_sort, kAll, joined(joined(lines, ties), joined(lines_of(any, "'descending': true"), lines_of(steps_, "'descending': true"))), kExact},
      {"argsort", call_argsort, kAll, joined(ties, lines_of(any, "'descending': true")), kExact, {.difference = 0}},
      {"msort", one(msort), kAll, {{"", {{7}}}, {"", {{5, 3}}}, {"", {{300, 40}}}}, kExact, {.no_reference = "sort along the first dimension"}},
      {"topk", call_topk, kAll, {{"{'k': 2, 'dim': 1}", {{3, 5}}}, {"{'k': 3, 'dim': 0, 'largest': false}", {{5, 3}}}, {"{'k': 1}", {{}}}, {"{'k': 40}", {{20, 500}}}, {"{'k': 400, 'largest': false}", {{3, 500}}}, {"{'k': 7, 'dim': 0}", {steps({900, 8})}}, {"{'k': 50}", {{70000}}}, {"{'k': 0}", {{3, 4}}}}, kExact},
      {"kthvalue", call_kthvalue, kAll, {{"{'k': 2, 'dim': 1}", {{3, 5}}}, {"{'k': 5, 'dim': 0, 'keepdim': true}", {{5, 3}}}, {"{'k': 1}", {{}}}, {"{'k': 40}", {{20, 500}}}, {"{'k': 70, 'dim': 0}", {steps({300, 8})}}}, kExact},
      {"median", call_choice<median, median>, kAll, joined(filled_lines(any), filled_lines(steps_, "'keepdim': true")), kExact},
      {"median", call_choice<median, median>, kAll, {{"", {{7}}}, {"", {{3, 4}}}, {"", {{}}}, {"", {{300, 30}}}}, kExact, {.values = Values::ordinary, .no_reference = "the first line has it"}},
      {"nanmedian", call_choice<nanmedian, nanmedian>, kAll, joined(filled_lines(any), {{"", {{7}}}, {"", {{3, 4}}}, {"", {{30, 40}}}}), kExact},
      {"mode", call_mode, kAll, joined(filled_lines(steps_), filled_lines(any, "'keepdim': true")), kExact},
      {"quantile", call_quantile<quantile>, kReals, quantiles(), kLongSums, {.values = Values::ordinary}},
      {"nanquantile", call_quantile<nanquantile>, kReals, quantiles(), kLongSums, {.values = sums}},
      {"unique", call_unique, kAll, {{"", {steps({3, 5})}}, {"", {{}}}, {"", {{0, 3}}}, {"", {steps({300, 40})}}, {"{'dim': 0}", {steps({6, 2})}}, {"{'dim': 1}", {steps({2, 40, 1})}}, {"{'dim': 0}", {steps({40, 1})}}}, kExact, {.difference = 0}},
      {"unique_consecutive", call_unique_consecutive, kAll, {{"", {steps({3, 5})}}, {"", {{}}}, {"", {{0, 3}}}, {"", {steps({300, 40})}}, {"{'dim': 1}", {steps({2, 40})}}}, kExact, {.difference = 0}},
      {"searchsorted", call_searchsorted, kNumbers, {{"{'right': false}", {steps({7}), steps({3, 4})}}, {"{'right': true}", {steps({7}), steps({})}}, {"{'right': true}", {steps({3, 5}), steps({3, 4})}}, {"{'right': false}", {steps({0}), steps({4})}}, {"{'right': false}", {ordinary({500}), ordinary({90, 80})}}, {"{'right': false}", {ordinary({5, 2, 50}), ordinary({5, 2, 80})}}}, kExact, {.difference = 0}},
      {"bucketize", call_bucketize, kNumbers, {{"{'right': false}", {steps({3, 4}), steps({7})}}, {"{'right': true}", {ordinary({900}), ordinary({50})}}}, kExact, {.difference = 0}},
      {"bincount", call_bincount, kReals, {{"", {index_in({20}, 6)}}, {"{'minlength': 9}", {index_in({0}, 6)}}, {"", {index_in({500}, 40), constant({500})}}}, kSums, {.difference = 0}},
      {"histc", call_histc, kReals, {{"{'bins': 6, 'min': -1.0, 'max': 2.0}", {{40}}}, {"{'bins': 10, 'min': 0, 'max': 0}", {{30, 40}}}, {"{'bins': 3, 'min': 1, 'max': 1}", {{1}}}}, kExact, {.difference = 0, .values = Values::ordinary}},
      {"isin", call_isin, kAll, {{"", {steps({3, 5}), steps({3})}}, {"{'invert': true}", {steps({90, 8}), steps({2, 2})}}, {"", {steps({4}), steps({0})}}, {"{'invert': true}", {steps({4}), steps({0})}}}, kExact, {.difference = 0}},
      {"max", call_choice<max, max>, kAll, joined(filled_lines(any), filled_lines(steps_, "'keepdim': true")), kExact},
      {"max", call_choice<max, max>, kAll, {{"", {{3, 4}}}, {"", {{}}}, {"", {{900, 8}}}}, kExact, {.no_reference = "the first line has it"}},
      {"min", call_choice<min, min>, kAll, joined(filled_lines(any), filled_lines(steps_, "'keepdim': true")), kExact},
      {"min", call_choice<min, min>, kAll, {{"", {{3, 4}}}, {"", {{}}}, {"", {{900, 8}}}}, kExact, {.no_reference = "the first line has it"}},
      {"aminmax", call_aminmax, kAll, {{"", {{3, 4}}}, {"{'dim': 1}", {{3, 5}}}, {"{'dim': 0, 'keepdim': true}", {{300, 40}}}}, kExact},
      {"nansum", call_nansum, kReals | kIntegers | kBool, sets, kSums, {.types_of_cpu = kHalves, .values = sums}},
      {"nanmean", call_nanmean, kReals, sets, kSums, {.types_of_cpu = kHalves, .values = sums}},
      {"count_nonzero", call_count_nonzero, kAll, {{"", {{2, 3, 4}}}, {"{'dim': [1]}", {{5, 3}}}, {"{'dim': [0]}", {{400, 33}}}, {"", {{0, 3}}}}, kExact, {.difference = 0}},
      {"var_mean", call_var_mean, kReals, sets, kLongSums, {.difference = 1e-5, .types_of_cpu = kHalves, .values = sums}},
      {"std_mean", call_std_mean, kReals, sets, kLongSums, {.difference = 1e-4, .types_of_cpu = kHalves, .values = sums, .distinct = true}},
      {"dist", call_dist, kReals, {{"{'p': 2}", {{3, 4}, {3, 4}}}, {"{'p': 1}", {{5}, {2, 5}}}, {"{'p': 3}", {{20, 30}, {20, 30}}}, {"{'p': 'inf'}", {{20, 30}, {20, 30}}}, {"{'p': 0}", {{20, 30}, {20, 30}}}}, kLongSums, {.difference = 1e-5, .types_of_cpu = kHalves, .values = Values::ordinary}},
      {"renorm", call_renorm, kReals, {{"{'p': 2, 'dim': 0, 'maxnorm': 1.5}", {{3, 4}}}, {"{'p': 1, 'dim': 1, 'maxnorm': 3}", {{2, 3, 4}}}, {"{'p': 3, 'dim': -1, 'maxnorm': 20}", {{30, 40}}}}, kLongSums, {.difference = 1e-5, .types_of_cpu = kHalves, .values = Values::ordinary}},
  };
  // clang-format on
}

}  // namespace tenon::conformance
