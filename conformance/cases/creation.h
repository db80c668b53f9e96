// New tensors. The input says dtype and device only.
#pragma once

#include <tenon/conformance/case.h>
#include <tenon/core/ops/creation.h>
#include <tenon/core/random.h>

namespace tenon::conformance {

inline TensorOptions options_of(const List& in) {
  return {.dtype = in[0].dtype(), .device = in[0].device()};
}
inline List call_arange(const json& a, const List& in) {
  return {arange(number_of(a.at("start")), number_of(a.at("end")), number_of(a.at("step")),
                 options_of(in))};
}
// Into every second column of a tensor as well.
inline List call_fill(const json& a, const List& in) {
  Tensor whole = full({5, 34}, number_of(a.at("number")), options_of(in));
  whole.slice(1, 0, 34, 2).fill_(1);
  return {whole, full(shape_of(a.at("shape")), number_of(a.at("number")), options_of(in))};
}

// linspace and logspace.
inline List call_linspace(const json& a, const List& in) {
  return {
      linspace(number_of(a.at("start")), number_of(a.at("end")), a.at("steps"), options_of(in))};
}
inline List call_logspace(const json& a, const List& in) {
  return {logspace(number_of(a.at("start")), number_of(a.at("end")), a.at("steps"),
                   a.value("base", 10.0), options_of(in))};
}
inline List call_eye(const json& a, const List& in) {
  if (!a.contains("m")) return {eye(a.at("n"), options_of(in))};
  return {eye(a.at("n"), a.at("m"), options_of(in))};
}
template <Tensor (*indices)(int64_t, int64_t, int64_t, const TensorOptions&)>
List call_indices(const json& a, const List& in) {
  return {indices(a.at("row"), a.at("col"), a.at("offset"), options_of(in))};
}
inline List call_full_like(const json& a, const List& in) {
  return {full_like(in[0], number_of(a.at("fill_value")))};
}
template <Tensor (*draw)(const Tensor&, const TensorOptions&)>
List call_drawn_like(const json&, const List& in) {
  manual_seed(11);
  return {draw(in[0], {})};
}
inline List call_randint_like(const json&, const List& in) {
  manual_seed(12);
  return {randint_like(in[0], 2, 9)};
}
inline List call_randperm(const json& a, const List& in) {
  manual_seed(13);
  return {randperm(a.at("n"), options_of(in))};
}
inline List call_one_hot(const json& a, const List& in) {
  return {one_hot(in[0], a.value("num_classes", int64_t{-1}))};
}

inline std::vector<Line> creation_cases() {
  const char* const seeded = "PyTorch draws other numbers";
  constexpr Types numbers = kReals | set_of({i64, i32});
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
      {"linspace", call_linspace, numbers, {{"{'start': -3, 'end': 7, 'steps': 5}", {{1}}}, {"{'start': 0, 'end': 1, 'steps': 1031}", {{1}}}, {"{'start': 4, 'end': 4, 'steps': 3}", {{1}}}, {"{'start': 2, 'end': 9, 'steps': 1}", {{1}}}, {"{'start': 9, 'end': 2, 'steps': 0}", {{1}}}, {"{'start': 0, 'end': 9, 'steps': 20001}", {{1}}, kAll, true}}, {.difference = 0}},
      {"logspace", call_logspace, kReals, {{"{'start': -2, 'end': 2, 'steps': 5}", {{1}}}, {"{'start': 0, 'end': 10, 'steps': 11, 'base': 2}", {{1}}}, {"{'start': 0, 'end': 1, 'steps': 20001}", {{1}}, kAll, true}}, kPowers, {.difference = 0}},
      {"eye", call_eye, kAll, {{"{'n': 3}", {{1}}}, {"{'n': 31, 'm': 17}", {{1}}}, {"{'n': 0, 'm': 3}", {{1}}}, {"{'n': 131, 'm': 90}", {{1}}, kAll, true}}, {.difference = 0}},
      {"tril_indices", call_indices<tril_indices>, set_of({i64, i32}), {{"{'row': 3, 'col': 4, 'offset': 0}", {{1}}}, {"{'row': 4, 'col': 3, 'offset': -2}", {{1}}}, {"{'row': 2, 'col': 3, 'offset': 9}", {{1}}}, {"{'row': 2, 'col': 3, 'offset': -9}", {{1}}}, {"{'row': 131, 'col': 90, 'offset': 3}", {{1}}, kAll, true}}, {.difference = 0}},
      {"triu_indices", call_indices<triu_indices>, set_of({i64, i32}), {{"{'row': 3, 'col': 4, 'offset': 0}", {{1}}}, {"{'row': 4, 'col': 3, 'offset': -2}", {{1}}}, {"{'row': 2, 'col': 3, 'offset': 9}", {{1}}}, {"{'row': 2, 'col': 3, 'offset': -9}", {{1}}}, {"{'row': 131, 'col': 90, 'offset': 3}", {{1}}, kAll, true}}, {.difference = 0}},
      {"full_like", call_full_like, kAll, {{"{'fill_value': 1}", {{2, 3}}}}, {.difference = 0, .no_reference = "full"}},
      {"rand_like", call_drawn_like<rand_like>, kReals, {{"", {{31}}}}, kExact, {.difference = 0, .no_reference = seeded}},
      {"randn_like", call_drawn_like<randn_like>, kReals, {{"", {{31}}}}, kExact, {.difference = 0, .no_reference = seeded}},
      {"randint_like", call_randint_like, set_of({i64, i32}), {{"", {{31}}}}, kExact, {.difference = 0, .no_reference = seeded}},
      {"randperm", call_randperm, set_of({i64, i32}), {{"{'n': 31}", {{1}}}, {"{'n': 0}", {{1}}}, {"{'n': 1}", {{1}}}, {"{'n': 20001}", {{1}}, kAll, true}}, kExact, {.difference = 0, .no_reference = seeded}},
      {"one_hot", call_one_hot, set_of({i64}), {{"{'num_classes': 7}", {index_in({2, 3}, 7)}}, {"", {index_in({31}, 17)}}, {"{'num_classes': 3}", {index_in({0}, 3)}}}, {.difference = 0}},
  };
  // clang-format on
}

}  // namespace tenon::conformance
