// Picking by index: the same values, and gradients added up in the same order everywhere.
#pragma once

#include <tenon/conformance/bytes.h>
#include <tenon/conformance/case.h>
#include <tenon/core/ops/indexing.h>

namespace tenon::conformance {

// i32 indices where the arguments say so.
inline Tensor indices_of(const json& a, const Tensor& index) {
  return a.value("i32", false) && index.dtype() == i64 ? as_i32(index) : index;
}
inline List call_embedding(const json& a, const List& in) {
  return {embedding(indices_of(a, in[0]), in[1], a.value("padding_idx", int64_t{-1}))};
}
inline List call_index_select(const json& a, const List& in) {
  return {index_select(in[0], a.at("dim"), indices_of(a, in[1]))};
}
inline List call_gather(const json& a, const List& in) {
  return {gather(in[0], a.at("dim"), indices_of(a, in[1]))};
}

inline std::vector<Variant> rows() {
  std::vector<Variant> variants = {
      {"", {index_in({2, 3}, 4), {4, 3}}},
      {"{'padding_idx': 1, 'i32': true}", {index_in({20}, 30), {30, 2}}},
      {"", {index_in({7, 11}, 50), {50, 6}}},
      {"", {index_in({0}, 5), {5, 6}}},
      {"", {index_in({}, 5), {5, 6}}}};
  for (int64_t width : {1, 3, 4, 32, 70})
    for (int64_t count : {1, 20, 33, 500})
      variants.push_back({count == 20 && width > 30 ? "{'padding_idx': 2}"
                          : count == 33             ? "{'i32': true}"
                                                    : "",
                          {index_in({count}, 9), In(Shape{9, width})}});
  return variants;
}
inline std::vector<Variant> slices() {
  std::vector<Variant> variants = {{"{'dim': 0}", {{3, 4, 2}, index_in({3}, 3)}},
                                   {"{'dim': 1, 'i32': true}", {{3, 4, 2}, index_in({5}, 4)}}};
  for (const Shape& shape :
       {Shape{6}, Shape{5, 7}, Shape{3, 8, 4}, Shape{2, 300, 3}, Shape{100, 100}})
    for (size_t d = 0; d < shape.size(); ++d)
      for (int64_t count : {0, 1, 5, 40, 400})
        variants.push_back({"{'dim': " + std::to_string(d) + "}",
                            {In(shape), index_in({count}, shape[d])},
                            shape.numel() * count > 1000000 ? kF32 : kAll});
  return variants;
}
inline std::vector<Variant> places() {
  // Short lines, long ones that are sorted, an index smaller than the input elsewhere, nothing.
  std::vector<Variant> variants;
  for (auto& [x, index, dim] :
       std::initializer_list<std::tuple<Shape, Shape, int64_t>>{{{3, 4, 2}, {3, 2, 2}, 1},
                                                                {{2, 3}, {2, 1}, -1},
                                                                {{6}, {4}, 0},
                                                                {{5, 7}, {5, 3}, 1},
                                                                {{5, 7}, {9, 7}, 0},
                                                                {{3, 4, 5}, {3, 9, 5}, 1},
                                                                {{10}, {5000}, 0},
                                                                {{4, 6}, {4, 100}, 1},
                                                                {{4, 6, 3}, {2, 50, 2}, 1},
                                                                {{4, 6}, {2, 3}, 0},
                                                                {{4, 6}, {4, 0}, 1},
                                                                {{1, 1}, {1, 1}, 0},
                                                                {{6, 10, 8}, {6, 4, 8}, 1}})
    variants.push_back({"{'dim': " + std::to_string(dim) + "}",
                        {In(x), index_in(index, x[static_cast<size_t>(dim < 0 ? 1 : dim)])}});
  variants.push_back({"{'dim': 1}", {{70000, 2}, index_in({70000, 1}, 2)}, kF32});
  return variants;
}

inline std::vector<Line> indexing_cases() {
  // clang-format off
  return {
      {"embedding", call_embedding, kReals, rows(), kExact, {.types_of_cpu = kHalves, .values = Values::ordinary}},
      {"index_select", call_index_select, kAll, slices(), kExact, {.values = Values::ordinary}},
      {"gather", call_gather, kAll, places(), kExact, {.values = Values::ordinary}},
  };
  // clang-format on
}

}  // namespace tenon::conformance
