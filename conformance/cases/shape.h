// Views, joining and splitting, copies between dtypes and devices.
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/ops/shape.h>

#include <tenon/conformance/bytes.h>
#include <tenon/conformance/case.h>

namespace tenon::conformance {

inline List call_reshape(const json& a, const List& in) {
  return {reshape(in[0], shape_of(a.at("shape")))};
}
inline List call_view(const json& a, const List& in) {
  return {view(contiguous(in[0]), shape_of(a.at("shape")))};
}
inline List call_permute(const json& a, const List& in) {
  return {permute(in[0], shape_of(a.at("dims")))};
}
inline List call_transpose(const json& a, const List& in) {
  return {transpose(in[0], a.at("dim0"), a.at("dim1"))};
}
inline List call_flatten(const json& a, const List& in) {
  return {flatten(in[0], a.at("start_dim"), a.at("end_dim"))};
}
inline List call_expand(const json& a, const List& in) {
  return {expand(in[0], shape_of(a.at("shape")))};
}
inline List call_squeeze(const json& a, const List& in) {
  return {a.contains("dim") ? squeeze(in[0], a.at("dim")) : squeeze(in[0])};
}
inline List call_narrow(const json& a, const List& in) {
  return {narrow(in[0], a.at("dim"), a.at("start"), a.at("length"))};
}
inline List call_slice(const json& a, const List& in) {
  return {slice(in[0], a.at("dim"), a.at("start"), a.at("end"), a.at("step"))};
}
inline List call_select(const json& a, const List& in) {
  return {select(in[0], a.at("dim"), a.at("index"))};
}
inline List call_cat(const json& a, const List& in) { return {cat(in, a.at("dim"))}; }
inline List call_stack(const json& a, const List& in) { return {stack(in, a.at("dim"))}; }
inline List call_split(const json& a, const List& in) {
  return split(in[0], a.at("split_size").get<int64_t>(), a.at("dim"));
}
inline List call_chunk(const json& a, const List& in) {
  return chunk(in[0], a.at("chunks"), a.at("dim"));
}
inline List call_to(const json& a, const List& in) {
  for (DType t : {f32, f64, f16, bf16, i64, i32, u8, boolean})
    if (name_of(t) == a.at("dtype").get<std::string>()) return {to(in[0], t)};
  return {};
}
inline List call_there_and_back(const json&, const List& in) {
  return {to(to(in[0], Device("cpu:1")), in[0].device())};
}
inline List call_contiguous(const json&, const List& in) { return {contiguous(in[0])}; }
inline List call_clone(const json&, const List& in) { return {clone(in[0])}; }
// Copies into a part of a tensor of zeros, which broadcasts the source.
inline List call_copy(const json&, const List& in) {
  Tensor whole =
      zero_bytes({3, in[0].size(0) + 1, in[0].size(1)}, in[0].dtype(), in[0].device());
  whole.narrow(1, 1, in[0].size(0)).copy_(in[0]);
  return {whole};
}

inline std::vector<Variant> conversions() {
  std::vector<Variant> variants;
  int turn = 0;
  for (const char* dtype : {"f32", "f64", "f16", "bf16", "i64", "i32", "bool"})
    for (const Shape& shape : {Shape{1031}, Shape{5, 7}, Shape{3, 33, 65}})
      if (turn++ % 2 == 0 || shape.size() == 2)
        variants.push_back({"{'dtype': '" + std::string(dtype) + "'}", {In(shape)}});
  variants.push_back({"{'dtype': 'u8'}", {{positive_in({64, 31})}}});
  return variants;
}

inline std::vector<Line> shape_cases() {
  const std::vector<Variant> matrices = {
      {"", {{3, 4}}}, {"", {{0, 3}}}, {"", {{1, 1031}}}, {"", {{64, 96}}}, {"", {{40, 70}}}};
  // clang-format off
  return {
      {"reshape", call_reshape, kAll, {{"{'shape': [4, -1]}", {{2, 3, 4}}}, {"{'shape': [8, 3]}", {{4, 3, 2}}}, {"{'shape': [3, 0]}", {{0, 3}}}, {"{'shape': [-1]}", {{17, 31}}}}, kExact},
      {"view", call_view, kAll, {{"{'shape': [4, 6]}", {{2, 3, 4}}}, {"{'shape': [17, 31]}", {{527}}}}, kExact, {.no_reference = "reshape without a copy"}},
      {"permute", call_permute, kAll, {{"{'dims': [1, 2, 0]}", {{2, 3, 4}}}, {"{'dims': [2, 0, 1]}", {{5, 31, 17}}}}, kExact},
      {"transpose", call_transpose, kAll, {{"{'dim0': 0, 'dim1': 2}", {{2, 3, 4}}}, {"{'dim0': 0, 'dim1': 1}", {{40, 70}}}}, kExact},
      {"flatten", call_flatten, kAll, {{"{'start_dim': 1, 'end_dim': -1}", {{2, 3, 4}}}, {"{'start_dim': 0, 'end_dim': -1}", {{}}}}, kExact},
      {"expand", call_expand, kAll, {{"{'shape': [3, 2, 4]}", {{2, 1}}}, {"{'shape': [5, 7]}", {{1, 7}}}, {"{'shape': [2, 0, 3]}", {{0, 3}}}}, kExact},
      {"unsqueeze", along(unsqueeze), kAll, {{"{'dim': 1}", {{2, 3, 4}}}, {"{'dim': -1}", {{7}}}}, kExact},
      {"squeeze", call_squeeze, kAll, {{"{'dim': 1}", {{2, 1, 4}}}, {"", {{1, 3, 1}}}}, kExact},
      {"narrow", call_narrow, kAll, {{"{'dim': 1, 'start': 1, 'length': 2}", {{2, 3, 4}}}, {"{'dim': 0, 'start': 4, 'length': 0}", {{4}}}, {"{'dim': 1, 'start': 3, 'length': 29}", {{5, 33}}}}, kExact},
      {"slice", call_slice, kAll, {{"{'dim': 2, 'start': 0, 'end': 4, 'step': 3}", {{2, 3, 4}}}, {"{'dim': 0, 'start': 1, 'end': 1031, 'step': 7}", {{1031}}},
        {"{'dim': 0, 'start': 1, 'end': 7, 'step': 2}", {{7, 10, 12}}}, {"{'dim': 1, 'start': 1, 'end': 9, 'step': 3}", {{7, 10, 12}}}, {"{'dim': 2, 'start': 1, 'end': 9, 'step': 1}", {{7, 10, 12}}}}, kExact},
      {"select", call_select, kAll, {{"{'dim': 1, 'index': 2}", {{2, 3, 4}}}, {"{'dim': 0, 'index': -1}", {{31}}}}, kExact, {.no_reference = "narrow and squeeze"}},
      {"cat", call_cat, kAll,
       {{"{'dim': 1}", {{2, 1, 2}, {2, 3, 2}, {2, 2, 2}}}, {"{'dim': 0}", {{5, 3}, {0, 3}, {2, 3}}}, {"{'dim': 0}", {{1031}, {1}}}, {"{'dim': -1}", {{7, 33}, {7, 64}}}, {"{'dim': 0}", {{64, 96}, {31, 96}}},
        {"{'dim': 2}", {{3, 4, 17}, {3, 4, 1}, {3, 4, 0}, {3, 4, 20}, {3, 4, 5}, {3, 4, 8}, {3, 4, 2}, {3, 4, 13}, {3, 4, 4}}}},
       kExact},
      {"stack", call_stack, kAll, {{"{'dim': -1}", {{2, 2}, {2, 2}}}, {"{'dim': 0}", {{}, {}}}, {"{'dim': 1}", {{7, 31}, {7, 31}, {7, 31}}}}, kExact},
      {"split", call_split, kAll, {{"{'split_size': 2, 'dim': 0}", {{5, 2}}}, {"{'split_size': 7, 'dim': 1}", {{3, 31}}}}, kExact},
      {"chunk", call_chunk, kAll, {{"{'chunks': 2, 'dim': 0}", {{4, 2}}}, {"{'chunks': 3, 'dim': 0}", {{31, 5}}}}, kExact},
      {"contiguous", call_contiguous, kAll, matrices, kExact, {.no_reference = "the same values"}},
      {"clone", call_clone, kAll, matrices, kExact, {.no_reference = "the same values"}},
      {"copy", call_copy, kAll, matrices, kExact, {.difference = 0, .no_reference = "the same values"}},
      {"to", call_to, kAll, conversions(), kExact, {.difference = 0, .values = Values::ordinary, .no_reference = "conversions; tests/ops/shape/copy_test.cpp has values"}},
      {"to_device", call_there_and_back, kAll, matrices, kExact, {.no_reference = "the same values"}},
  };
  // clang-format on
}

}  // namespace tenon::conformance
