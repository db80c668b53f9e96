// Writing at indices, several indices, masks: lines of the family of indexing.
#pragma once

#include <tenon/conformance/case.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/sort.h>

namespace tenon::conformance {

// Where a place occurs twice, the gradient that PyTorch gives to what was written over is not the
// slope. So small variants say 'once': the numbers become an order.
inline Tensor places_in(const json& a, const Tensor& index, int64_t dim) {
  return a.value("once", false) ? argsort(index, dim) : index;
}
inline List call_scatter(const json& a, const List& in) {
  const int64_t dim = a.at("dim");
  const Tensor index = places_in(a, in[1], dim);
  if (a.contains("value")) return {scatter(in[0], dim, index, number_of(a.at("value")))};
  return {scatter(in[0], dim, index, in[2])};
}
inline List call_scatter_add(const json& a, const List& in) {
  return {scatter_add(in[0], a.at("dim"), in[1], in[2])};
}
inline List call_scatter_reduce(const json& a, const List& in) {
  return {scatter_reduce(in[0], a.at("dim"), in[1], in[2], a.at("reduce").get<std::string>(),
                         a.value("include_self", true))};
}
inline List call_index_add(const json& a, const List& in) {
  return {index_add(in[0], a.at("dim"), in[1], in[2], number_of(a.value("alpha", json(1))))};
}
inline List call_index_copy(const json& a, const List& in) {
  return {index_copy(in[0], a.at("dim"), places_in(a, in[1], 0), in[2])};
}
inline List call_index_fill(const json& a, const List& in) {
  return {index_fill(in[0], a.at("dim"), in[1], number_of(a.at("value")))};
}
// Indices as they come, a whole dimension where 'whole' says so.
inline std::vector<Tensor> indices_in(const json& a, const List& in, size_t begin, size_t end) {
  std::vector<Tensor> indices;
  for (size_t i = begin; i < end; ++i) {
    if (a.value("whole", -1) == static_cast<int>(i - begin)) indices.emplace_back();
    const bool mask = in[i].dtype() == boolean;
    indices.push_back(mask ? in[i] : places_in(a, in[i], 0));
  }
  return indices;
}
inline List call_index(const json& a, const List& in) {
  return {index(in[0], indices_in(a, in, 1, in.size()))};
}
inline List call_index_put(const json& a, const List& in) {
  return {index_put(in[0], indices_in(a, in, 1, in.size() - 1), in[in.size() - 1],
                    a.value("accumulate", false))};
}
inline List call_put(const json& a, const List& in) {
  return {put(in[0], places_in(a, in[1], 0), in[2], a.value("accumulate", false))};
}
inline List call_take_along_dim(const json& a, const List& in) {
  return {a.contains("dim") ? take_along_dim(in[0], in[1], a.at("dim"))
                            : take_along_dim(in[0], in[1])};
}
inline List call_masked_select(const json&, const List& in) {
  return {masked_select(in[0], in[1])};
}
inline List call_masked_fill(const json& a, const List& in) {
  return {masked_fill(in[0], in[1], number_of(a.at("value")))};
}
inline List call_masked_scatter(const json&, const List& in) {
  return {masked_scatter(in[0], in[1], in[2])};
}
inline List call_nonzero_as_tuple(const json&, const List& in) { return nonzero_as_tuple(in[0]); }

// x, index and src: lines along every dimension, an index that is smaller elsewhere, one long line.
inline std::vector<Variant> writes(const std::string& more) {
  std::vector<Variant> variants;
  for (auto& [x, index, dim] :
       std::initializer_list<std::tuple<Shape, Shape, int64_t>>{{{3, 4, 2}, {3, 2, 2}, 1},
                                                                {{2, 3}, {2, 2}, -1},
                                                                {{6}, {4}, 0},
                                                                {{4, 6}, {2, 3}, 0},
                                                                {{}, {}, 0},
                                                                {{5, 7}, {9, 7}, 0},
                                                                {{10}, {5000}, 0},
                                                                {{5000}, {70000}, 0},
                                                                {{4, 6, 3}, {2, 50, 2}, 1},
                                                                {{4, 6}, {4, 0}, 1},
                                                                {{60, 10, 80}, {60, 4, 80}, 1},
                                                                {{90, 600}, {90, 600}, 0}}) {
    const bool small = index.numel() <= 12;
    const int64_t size = x.empty() ? 1 : x[dim];
    variants.push_back(
        {"{'dim': " + std::to_string(dim) + (small ? ", 'once': true" : "") + more + "}",
         {In(x), index_in(index, size), In(index)}});
  }
  return variants;
}
inline std::vector<Variant> reductions(const std::string& reduce) {
  auto variants = writes(", 'reduce': '" + reduce + "'");
  const auto without = writes(", 'include_self': false, 'reduce': '" + reduce + "'");
  variants.insert(variants.end(), without.begin(), without.end());
  return variants;
}
// x, index and source of whole slices.
inline std::vector<Variant> slice_writes(const std::string& more) {
  std::vector<Variant> variants;
  for (auto& [x, count, dim] :
       std::initializer_list<std::tuple<Shape, int64_t, int64_t>>{{{4, 3}, 3, 0},
                                                                  {{2, 5, 2}, 4, 1},
                                                                  {{6}, 2, 0},
                                                                  {{5, 7}, 0, 1},
                                                                  {{9, 70}, 500, 0},
                                                                  {{70, 9}, 500, 1}}) {
    Shape source = x;
    source[dim] = count;
    variants.push_back(
        {"{'dim': " + std::to_string(dim) + (count < 10 ? ", 'once': true" : "") + more + "}",
         {In(x), index_in({count}, x[dim]), In(source)}});
  }
  return variants;
}

inline std::vector<Line> scatter_cases() {
  const auto ordinary_ = Values::ordinary;
  const std::vector<Variant> masked = {
      {"", {{3, 4}, flags({3, 4})}}, {"", {{3, 4}, flags({4})}},
      {"", {{4}, flags({3, 1})}},    {"", {{}, flags({})}},
      {"", {{0, 3}, flags({0, 3})}}, {"", {{300, 40}, flags({300, 40})}}};
  const std::vector<Variant> chosen = {
      {"", {{5, 3}, index_in({4}, 5)}},
      {"", {{4, 5}, index_in({6}, 4), index_in({6}, 5)}},
      {"", {{4, 5, 2}, index_in({2, 1}, 4), index_in({3}, 5)}},
      {"{'whole': 1}", {{4, 2, 5}, index_in({3}, 4), index_in({3}, 5)}},
      {"{'whole': 0}", {{2, 4, 5}, index_in({3}, 4), index_in({3}, 5)}},
      {"", {{4, 5}, flags({4, 5})}},
      {"", {{4, 5, 2}, flags({4}), index_in({1}, 5)}},
      {"", {{300, 40}, index_in({7, 90}, 300)}}};
  const auto with_values = [](std::vector<Variant> variants, const Shape& values) {
    for (auto& v : variants) v.in.push_back(In(values));
    return variants;
  };
  // clang-format off
  return {
      {"scatter", call_scatter, kAll, writes(""), kExact, {.values = ordinary_}},
      {"scatter", call_scatter, kAll, writes(", 'value': 1"), kExact, {.values = ordinary_, .no_reference = "the first line has it"}},
      {"scatter_add", call_scatter_add, kReals | kIntegers, writes(""), kSums, {.types_of_cpu = kHalves, .values = ordinary_}},
      {"scatter_reduce", call_scatter_reduce, kReals | kIntegers, reductions("sum"), kSums, {.types_of_cpu = kHalves, .values = ordinary_}},
      {"scatter_reduce", call_scatter_reduce, kReals, reductions("mean"), kSums, {.types_of_cpu = kHalves, .values = ordinary_, .no_reference = "the first line has it"}},
      {"scatter_reduce", call_scatter_reduce, kReals, reductions("prod"), kLongSums, {.difference = 1e-5, .types_of_cpu = kHalves, .values = Values::near_one, .no_reference = "the first line has it"}},
      {"scatter_reduce", call_scatter_reduce, kReals | kIntegers, reductions("amax"), kExact, {.types_of_cpu = kHalves, .values = ordinary_, .no_reference = "the first line has it"}},
      {"scatter_reduce", call_scatter_reduce, kReals | kIntegers, reductions("amin"), kExact, {.types_of_cpu = kHalves, .values = ordinary_, .no_reference = "the first line has it"}},
      {"index_add", call_index_add, kReals | kIntegers, slice_writes(""), kSums, {.types_of_cpu = kHalves, .values = ordinary_}},
      {"index_add", call_index_add, kReals, slice_writes(", 'alpha': -0.5"), kSums, {.types_of_cpu = kHalves, .values = ordinary_, .no_reference = "the first line has it"}},
      {"index_copy", call_index_copy, kAll, slice_writes(""), kExact, {.values = ordinary_}},
      {"index_fill", call_index_fill, kAll, {{"{'dim': 0, 'value': 1}", {{5, 3}, index_in({2}, 5)}}, {"{'dim': -1, 'value': 0}", {{30, 40}, index_in({20}, 40)}}, {"{'dim': 0, 'value': 1}", {{}, index_in({1}, 1)}}}, kExact, {.values = ordinary_}},
      {"index", call_index, kAll, chosen, kExact, {.values = ordinary_, .op = "ravel_index"}},
      {"index_put", call_index_put, kAll, with_values({{"{'once': true}", {{5, 3}, index_in({4}, 5)}}, {"{'once': true}", {{4, 5}, index_in({3}, 4), index_in({3}, 5)}}, {"{'whole': 1, 'once': true}", {{4, 2, 5}, index_in({3}, 4), index_in({3}, 5)}}, {"", {{300, 40}, index_in({900}, 300)}}, {"", {{4, 5}, flags({4, 5})}}}, {1}), kExact, {.values = ordinary_}},
      {"index_put", call_index_put, kReals | kIntegers, with_values({{"{'accumulate': true}", {{5, 3}, index_in({4}, 5)}}, {"{'accumulate': true}", {{4, 5}, index_in({2, 1}, 4), index_in({3}, 5)}}, {"{'accumulate': true, 'whole': 1}", {{4, 2, 5}, index_in({3}, 4), index_in({3}, 5)}}, {"{'accumulate': true}", {{300, 40}, index_in({900}, 300)}}}, {}), kSums, {.values = ordinary_, .no_reference = "the first line has it"}},
      {"put", call_put, kAll, {{"{'once': true}", {{3, 4}, index_in({5}, 12), {5}}}, {"", {{30, 40}, index_in({900}, 1200), {900}}}}, kExact, {.values = ordinary_}},
      {"take", two(take), kAll, {{"", {{3, 4}, index_in({2, 3}, 12)}}, {"", {{5}, index_in({}, 5)}}, {"", {{30, 40}, index_in({900}, 1200)}}}, kExact, {.values = ordinary_}},
      {"take_along_dim", call_take_along_dim, kAll, {{"{'dim': 2}", {{3, 1, 4}, index_in({1, 2, 3}, 4)}}, {"", {{3, 4}, index_in({5}, 12)}}, {"{'dim': 0}", {{30, 40}, index_in({20, 40}, 30)}}}, kExact, {.values = ordinary_}},
      {"masked_select", call_masked_select, kAll, masked, kExact},
      {"masked_fill", call_masked_fill, kAll, {{"{'value': 1}", {{3, 4}, flags({3, 4})}}, {"{'value': 0}", {{3, 1}, flags({4})}}, {"{'value': 1}", {{300, 40}, flags({300, 40})}}}, kExact},
      {"masked_scatter", call_masked_scatter, kAll, {{"", {{3, 4}, flags({3, 4}), {3, 4}}}, {"", {{3, 4}, flags({4}), {3, 4}}}, {"", {{300, 40}, flags({300, 40}), {300, 40}}}}, kExact},
      {"nonzero", one(nonzero), kAll, {{"", {{3, 4}}}, {"", {{}}}, {"", {{0, 3}}}, {"", {steps({30, 4, 50})}}, {"", {steps({70000})}}}, kExact, {.difference = 0}},
      {"argwhere", one(argwhere), kAll, {{"", {{3, 4}}}, {"", {steps({30, 4, 50})}}}, kExact, {.difference = 0, .no_reference = "another name of nonzero"}},
      {"nonzero_as_tuple", call_nonzero_as_tuple, kAll, {{"", {{3, 4}}}, {"", {steps({30, 4, 50})}}}, kExact, {.difference = 0, .no_reference = "the columns of nonzero"}},
  };
  // clang-format on
}

}  // namespace tenon::conformance
