// Views, joining and splitting, copies between dtypes and devices.
#pragma once

#include <optional>

#include <tenon/conformance/bytes.h>
#include <tenon/conformance/case.h>
#include <tenon/core/device.h>
#include <tenon/core/ops/shape.h>

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
inline std::optional<int64_t> dim_or_none(const json& a, const char* name = "dim") {
  return a.contains(name) ? std::optional(a[name].get<int64_t>()) : std::nullopt;
}
inline std::vector<int64_t> numbers_of(const json& list) {
  return list.get<std::vector<int64_t>>();
}
inline List call_movedim(const json& a, const List& in) {
  return {movedim(in[0], shape_of(a.at("source")), shape_of(a.at("destination")))};
}
inline List call_swapaxes(const json& a, const List& in) {
  return {swapaxes(in[0], a.at("axis0"), a.at("axis1"))};
}
inline List call_unflatten(const json& a, const List& in) {
  return {unflatten(in[0], a.at("dim"), shape_of(a.at("sizes")))};
}
inline List call_broadcast_to(const json& a, const List& in) {
  return {broadcast_to(in[0], shape_of(a.at("size")))};
}
inline List call_broadcast_tensors(const json&, const List& in) { return broadcast_tensors(in); }
inline List call_unbind(const json& a, const List& in) { return unbind(in[0], a.at("dim")); }
inline List call_tensor_split(const json& a, const List& in) {
  const json& parts = a.at("indices_or_sections");
  if (parts.is_number()) return tensor_split(in[0], parts.get<int64_t>(), a.at("dim"));
  return tensor_split(in[0], numbers_of(parts), a.at("dim").get<int64_t>());
}
template <Tensor (*stack_function)(const std::vector<Tensor>&)>
List call_stacked(const json&, const List& in) {
  return {stack_function(in)};
}
inline List call_meshgrid(const json& a, const List& in) {
  return meshgrid(in, a.at("indexing").get<std::string>());
}
inline List call_diagonal(const json& a, const List& in) {
  return {diagonal(in[0], a.value("offset", int64_t{0}), a.value("dim1", int64_t{0}),
                   a.value("dim2", int64_t{1}))};
}
inline List call_diag_embed(const json& a, const List& in) {
  return {diag_embed(in[0], a.value("offset", int64_t{0}), a.value("dim1", int64_t{-2}),
                     a.value("dim2", int64_t{-1}))};
}
template <Tensor (*of_diagonal)(const Tensor&, int64_t)>
List call_with_diagonal(const json& a, const List& in) {
  return {of_diagonal(in[0], a.value("diagonal", int64_t{0}))};
}
inline List call_flip(const json& a, const List& in) {
  return {flip(in[0], shape_of(a.at("dims")))};
}
// Some cases call it "dim".
inline List call_roll(const json& a, const List& in) {
  const char* name = a.contains("dim") ? "dim" : "dims";
  return {roll(in[0], shape_of(a.at("shifts")), a.contains(name) ? shape_of(a[name]) : Shape())};
}
inline List call_rot90(const json& a, const List& in) {
  return {rot90(in[0], a.at("k"), shape_of(a.at("dims")))};
}
inline List call_repeat(const json& a, const List& in) {
  return {repeat(in[0], shape_of(a.at("repeats")))};
}
inline List call_tile(const json& a, const List& in) {
  return {tile(in[0], shape_of(a.at("dims")))};
}
inline List call_repeat_interleave(const json& a, const List& in) {
  if (in.size() > 1) return {repeat_interleave(in[0], in[1], dim_or_none(a))};
  return {repeat_interleave(in[0], a.at("repeats").get<int64_t>(), dim_or_none(a))};
}
inline List call_pad(const json& a, const List& in) {
  const json value = a.value("value", json(0));
  return {pad(in[0], numbers_of(a.at("pad")), a.value("mode", std::string("constant")),
              is_floating_point(in[0].dtype()) ? number_of(value)
                                               : Number(static_cast<int64_t>(number_of(value).f)))};
}
inline UnfoldOptions unfold_options(const json& a) {
  return {.dilation = pair_of(a.at("dilation")),
          .padding = pair_of(a.at("padding")),
          .stride = pair_of(a.at("stride"))};
}
inline List call_unfold(const json& a, const List& in) {
  return {unfold(in[0], pair_of(a.at("kernel_size")), unfold_options(a))};
}
inline List call_fold(const json& a, const List& in) {
  return {
      fold(in[0], pair_of(a.at("output_size")), pair_of(a.at("kernel_size")), unfold_options(a))};
}
inline List call_windows(const json& a, const List& in) {
  return {in[0].unfold(a.at("dim"), a.at("size"), a.at("step"))};
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
  Tensor whole = zero_bytes({3, in[0].size(0) + 1, in[0].size(1)}, in[0].dtype(), in[0].device());
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
      {"movedim", call_movedim, kAll, {{"{'source': [0], 'destination': [2]}", {{2, 3, 4}}}, {"{'source': [-1, 0], 'destination': [0, 1]}", {{5, 31, 17}}}}, kExact},
      {"swapaxes", call_swapaxes, kAll, {{"{'axis0': 0, 'axis1': 2}", {{2, 3, 4}}}}, kExact, {.no_reference = "transpose"}},
      {"unflatten", call_unflatten, kAll, {{"{'dim': 1, 'sizes': [2, -1]}", {{3, 8}}}, {"{'dim': -1, 'sizes': [4, 1, 2]}", {{3, 8}}}}, kExact, {.no_reference = "reshape"}},
      {"broadcast_to", call_broadcast_to, kAll, {{"{'size': [3, 2, 4]}", {{2, 1}}}, {"{'size': [5, 7]}", {{1, 7}}}, {"{'size': [31, 401]}", {{1, 401}}, kAll, true}}, kExact},
      {"broadcast_tensors", call_broadcast_tensors, kAll, {{"", {{2, 1}, {3}, {}}}, {"", {{31, 1, 7}, {1, 17, 1}}}}, kExact, {.no_reference = "expand"}},
      {"expand_as", two(expand_as), kAll, {{"", {{2, 1, 3}, constant({4, 2, 5, 3})}}}, kExact, {.no_reference = "expand"}},
      {"view_as", two(view_as), kAll, {{"", {{1}, constant({1, 1})}}, {"", {{31, 401}, constant({31, 1, 401})}}}, kExact, {.no_reference = "view"}},
      {"reshape_as", two(reshape_as), kAll, {{"", {{2, 3, 4}, constant({4, 6})}}}, kExact, {.no_reference = "reshape"}},
      {"atleast_1d", one(atleast_1d), kAll, {{"", {{}}}, {"", {{7}}}, {"", {{2, 3}}}}, kExact, {.no_reference = "reshape"}},
      {"atleast_2d", one(atleast_2d), kAll, {{"", {{}}}, {"", {{7}}}, {"", {{2, 3}}}}, kExact, {.no_reference = "reshape"}},
      {"atleast_3d", one(atleast_3d), kAll, {{"", {{}}}, {"", {{7}}}, {"", {{2, 3}}}, {"", {{2, 3, 4}}}}, kExact, {.no_reference = "reshape"}},
      {"unbind", call_unbind, kAll, {{"{'dim': 1}", {{2, 3, 4}}}, {"{'dim': -1}", {{31, 5}}}}, kExact},
      {"diagonal", call_diagonal, kAll, {{"", {{3, 4}}}, {"{'offset': -2, 'dim1': 2, 'dim2': 0}", {{3, 4, 5}}}, {"{'offset': 1, 'dim1': -1, 'dim2': -2}", {{17, 31, 33}}}, {"{'offset': 9}", {{3, 4}}}}, kExact},
      {"diag_embed", call_diag_embed, kAll, {{"", {{3, 4}}}, {"{'offset': -2, 'dim1': 0, 'dim2': 2}", {{3, 4}}}, {"{'offset': 1}", {{65}}}, {"", {{0}}}, {"", {{9, 61}}, kAll, true}}, kExact},
      {"diag", call_with_diagonal<diag>, kAll, {{"", {{4}}}, {"{'diagonal': -1}", {{4}}}, {"{'diagonal': 2}", {{5, 6}}}, {"{'diagonal': -30}", {{64, 31}}}}, kExact},
      {"trace", one(trace), kReals | kIntegers, {{"", {{3, 4}}}, {"", {{64, 31}}}, {"", {{0, 3}}}}, kSums, {.types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary}},
      {"tril", call_with_diagonal<tril>, kAll, {{"", {{3, 4}}}, {"{'diagonal': -1}", {{2, 5, 3}}}, {"{'diagonal': 2}", {{33, 65}}}, {"{'diagonal': 99}", {{3, 4}}}, {"{'diagonal': -99}", {{3, 4}}}, {"", {{2, 0, 3}}}}, kExact},
      {"triu", call_with_diagonal<triu>, kAll, {{"", {{3, 4}}}, {"{'diagonal': -1}", {{2, 5, 3}}}, {"{'diagonal': 2}", {{33, 65}}}, {"{'diagonal': 99}", {{3, 4}}}, {"{'diagonal': -99}", {{3, 4}}}, {"", {{2, 0, 3}}}}, kExact},
      {"flip", call_flip, kAll, {{"{'dims': [1]}", {{2, 3, 4}}}, {"{'dims': [0, -1]}", {{5, 31, 17}}}, {"{'dims': [0]}", {{1031}}}, {"{'dims': []}", {{2, 3}}}, {"{'dims': [0]}", {{0, 3}}}}, kExact},
      {"fliplr", one(fliplr), kAll, {{"", {{3, 4}}}}, kExact, {.no_reference = "flip"}},
      {"flipud", one(flipud), kAll, {{"", {{3, 4}}}}, kExact, {.no_reference = "flip"}},
      {"roll", call_roll, kAll, {{"{'shifts': [1], 'dims': [1]}", {{2, 3, 4}}}, {"{'shifts': [-3, 50], 'dims': [2, 0]}", {{5, 31, 17}}}, {"{'shifts': [7]}", {{31, 33}}}, {"{'shifts': [1, 1, 1], 'dims': [0, 0, 1]}", {{3, 4}}}, {"{'shifts': [2], 'dims': [0]}", {{0, 3}}}}, kExact},
      {"rot90", call_rot90, kAll, {{"{'k': 1, 'dims': [0, 1]}", {{3, 4}}}, {"{'k': 2, 'dims': [0, 1]}", {{3, 4}}}, {"{'k': -1, 'dims': [2, 0]}", {{2, 3, 4}}}, {"{'k': 4, 'dims': [0, 1]}", {{3, 4}}}}, kExact},
      {"repeat", call_repeat, kAll, {{"{'repeats': [2, 1, 3]}", {{2, 3}}}, {"{'repeats': [3]}", {{}}}, {"{'repeats': [1, 1]}", {{2, 3}}}, {"{'repeats': [2, 0]}", {{2, 3}}}, {"{'repeats': [2, 3, 2]}", {{5, 31, 17}}}, {"{'repeats': [2, 1, 2, 1, 3, 2, 2]}", {{1, 2, 2, 1, 2, 1, 2}}}, {"{'repeats': [2, 1, 1, 1, 1, 2, 1, 3]}", {{1, 2, 1, 1, 1, 2, 1, 2}}}}, kExact},
      {"tile", call_tile, kAll, {{"{'dims': [2]}", {{2, 3}}}, {"{'dims': [2, 1, 2]}", {{3}}}}, kExact},
      {"repeat_interleave", call_repeat_interleave, kAll, {{"{'repeats': 2, 'dim': 1}", {{2, 3, 4}}}, {"{'repeats': 3}", {{2, 3}}}, {"{'repeats': 1, 'dim': 0}", {{31, 17}}}, {"{'repeats': 0, 'dim': 0}", {{3, 2}}}, {"{'dim': -1}", {{2, 5}, index_in({5}, 4)}}, {"{'dim': 0}", {{31, 7}, index_in({1}, 4)}}, {"{'repeats': 2, 'dim': 7}", {{1, 1, 2, 1, 1, 1, 1, 3}}}}, kExact},
      {"pad", call_pad, kAll, {{"{'pad': [1, 2], 'value': 0.5}", {{2, 3}}, kFloats}, {"{'pad': [1, 0, -1, 2]}", {{2, 3}}}, {"{'pad': [3, 4, 0, 1, 2, 2], 'value': 1}", {{3, 17, 31}}}, {"{'pad': [0, 0]}", {{2, 3}}}, {"{'pad': [-1, -1, 0, 0, 1, 1, 0, 1], 'value': 1}", {{2, 1, 2, 4}}}}, kExact, {.op = "constant_pad"}},
      {"pad", call_pad, kAll,
       {{"{'pad': [2, 1], 'mode': 'reflect'}", {{2, 4}}}, {"{'pad': [1, 2, 2, 1], 'mode': 'reflect'}", {{1, 3, 4}}}, {"{'pad': [1, 1, 2, 0, 0, 2], 'mode': 'reflect'}", {{2, 4, 3, 5}}}, {"{'pad': [-1, 3], 'mode': 'reflect'}", {{2, 4}}},
        {"{'pad': [2, 1], 'mode': 'replicate'}", {{2, 3}}}, {"{'pad': [1, 2, 5, 1], 'mode': 'replicate'}", {{1, 3, 4}}}, {"{'pad': [1, 1, 2, 0, 0, 2], 'mode': 'replicate'}", {{2, 4, 3, 5}}}, {"{'pad': [4, -2], 'mode': 'replicate'}", {{2, 4}}},
        {"{'pad': [2, 1], 'mode': 'circular'}", {{2, 3}}}, {"{'pad': [1, 4, 3, 1], 'mode': 'circular'}", {{1, 3, 4}}}, {"{'pad': [1, 1, 2, 0, 0, 2], 'mode': 'circular'}", {{2, 4, 3, 5}}}, {"{'pad': [2, -1], 'mode': 'circular'}", {{2, 4}}}},
       kExact, {.no_reference = "the line before has the cases of all modes", .op = "border_pad"}},
      {"unfold", call_unfold, kAll,
       {{"{'kernel_size': [2, 2], 'dilation': [1, 2], 'padding': [1, 0], 'stride': [2, 1]}", {{2, 1, 3, 4}}}, {"{'kernel_size': [3, 1], 'dilation': [1, 1], 'padding': [0, 0], 'stride': [1, 1]}", {{2, 4, 5}}},
        {"{'kernel_size': [3, 3], 'dilation': [1, 1], 'padding': [1, 1], 'stride': [1, 1]}", {{2, 3, 17, 31}}}},
       kExact},
      {"unfold", call_windows, kAll, {{"{'dim': 0, 'size': 3, 'step': 1}", {{7}}}, {"{'dim': 1, 'size': 2, 'step': 3}", {{3, 9, 2}}}, {"{'dim': -1, 'size': 1, 'step': 2}", {{31, 17}}}, {"{'dim': 0, 'size': 0, 'step': 2}", {{5}}}}, kExact, {.no_reference = "the windows of one dimension; tests/ops/shape/order_test.cpp has values"}},
      {"fold", call_fold, kNumbers,
       {{"{'output_size': [3, 4], 'kernel_size': [2, 2], 'dilation': [1, 2], 'padding': [1, 0], 'stride': [2, 1]}", {{2, 4, 4}}},
        {"{'output_size': [17, 31], 'kernel_size': [3, 3], 'dilation': [1, 1], 'padding': [1, 1], 'stride': [1, 1]}", {{1, 18, 527}}},
        {"{'output_size': [6, 4], 'kernel_size': [2, 2], 'dilation': [1, 1], 'padding': [0, 0], 'stride': [2, 2]}", {{2, 4, 6}}}},
       kSums, {.values = Values::ordinary}},
      {"hstack", call_stacked<hstack>, kAll, {{"", {{2, 3}, {2, 1}}}, {"", {{3}, {}, {2}}}}, kExact},
      {"vstack", call_stacked<vstack>, kAll, {{"", {{2, 3}, {3}}}}, kExact},
      {"dstack", call_stacked<dstack>, kAll, {{"", {{2, 3}, {2, 3, 2}}}, {"", {{3}, {3}}}}, kExact, {.no_reference = "cat"}},
      {"column_stack", call_stacked<column_stack>, kAll, {{"", {{2, 3}, {2}}}}, kExact, {.no_reference = "cat"}},
      {"block_diag", call_stacked<block_diag>, kAll, {{"", {{2, 3}, {3}, {}, {1, 2}}}, {"", {{17, 31}, {33, 5}}}}, kExact, {.no_reference = "cat and pad; tests/ops/shape/join_test.cpp has values"}},
      {"meshgrid", call_meshgrid, kAll, {{"{'indexing': 'ij'}", {{2}, {3}, {}}}, {"{'indexing': 'xy'}", {{31}, {17}, {2}}}, {"{'indexing': 'xy'}", {{4}}}}, kExact, {.growing = true}},
      {"cartesian_prod", call_stacked<cartesian_prod>, kAll, {{"", {{2}, {3}, {4}}}, {"", {{7}}}}, kExact, {.no_reference = "meshgrid; tests/ops/shape/join_test.cpp has values", .growing = true}},
      {"tensor_split", call_tensor_split, kAll, {{"{'indices_or_sections': 3, 'dim': 0}", {{5, 2}}}, {"{'indices_or_sections': [1, -2], 'dim': 1}", {{3, 7}}}}, kExact, {.no_reference = "narrow; tests/ops/shape/join_test.cpp has values"}},
      {"contiguous", call_contiguous, kAll, matrices, kExact, {.no_reference = "the same values"}},
      {"clone", call_clone, kAll, matrices, kExact, {.no_reference = "the same values"}},
      {"copy", call_copy, kAll, matrices, kExact, {.difference = 0, .no_reference = "the same values"}},
      {"to", call_to, kAll, conversions(), kExact, {.difference = 0, .values = Values::ordinary, .no_reference = "conversions; tests/ops/shape/copy_test.cpp has values"}},
      {"to_device", call_there_and_back, kAll, matrices, kExact, {.no_reference = "the same values"}},
  };
  // clang-format on
}

}  // namespace tenon::conformance
