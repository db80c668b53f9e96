// New tensors. The input says dtype and device only.
#pragma once

#include <tenon/core/tensor.h>

#include <tenon/conformance/case.h>

namespace tenon::conformance {

inline TensorOptions options_of(const List& in) {
  return {.dtype = in[0].dtype(), .device = in[0].device()};
}
inline List call_arange(const json& a, const List& in) {
  return {arange(number_of(a.at("start")), number_of(a.at("end")), number_of(a.at("step")), options_of(in))};
}
// Into every second column of a tensor as well.
inline List call_fill(const json& a, const List& in) {
  Tensor whole = full({5, 34}, number_of(a.at("number")), options_of(in));
  whole.slice(1, 0, 34, 2).fill_(1);
  return {whole, full(shape_of(a.at("shape")), number_of(a.at("number")), options_of(in))};
}

inline std::vector<Line> creation_cases() {
  // clang-format off
  return {
      {"arange", call_arange, kReals | set_of({i64, i32}),
       {{"{'start': 0, 'end': 5, 'step': 1}", {{1}}}, {"{'start': 5, 'end': -2048, 'step': -2}", {{1}}}, {"{'start': 3, 'end': 3, 'step': 1}", {{1}}}, {"{'start': 0, 'end': 3000, 'step': 1}", {{1}}}, {"{'start': -1, 'end': 2, 'step': 0.1}", {{1}}, kReals},
        {"{'start': 1, 'end': 2, 'step': 0.25}", {{1}}, kReals}, {"{'start': -9000, 'end': 11011, 'step': 1}", {{1}}, kAll, true}},
       {.difference = 0, .no_reference = "tests/ops/creation/factory_test.cpp has values"}},
      {"fill", call_fill, kAll,
       {{"{'number': 3, 'shape': []}", {{1}}}, {"{'number': 1, 'shape': [1031]}", {{1}}}, {"{'number': 0, 'shape': [0, 3]}", {{1}}},
        {"{'number': -2.5, 'shape': [64, 31]}", {{1}}, kFloats}, {"{'number': 1, 'shape': [20011]}", {{1}}, kAll, true}},
       {.difference = 0, .no_reference = "tests/ops/creation/factory_test.cpp has values"}},
  };
  // clang-format on
}

}  // namespace tenon::conformance
