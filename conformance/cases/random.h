// Random numbers: the same seed gives the same numbers on every device. The input says shape, dtype
// and device only, except dropout.
#pragma once

#include <cstdint>
#include <limits>

#include <tenon/conformance/case.h>
#include <tenon/core/ops/random.h>
#include <tenon/core/random.h>

namespace tenon::conformance {

inline List call_uniform(const json&, const List& in) {
  manual_seed(7);
  return {empty_like(in[0]).uniform_(2, 3)};
}
inline List call_normal(const json&, const List& in) {
  manual_seed(8);
  return {empty_like(in[0]).normal_(10, 0.5)};
}
inline List call_randint(const json& a, const List& in) {
  manual_seed(9);
  return {randint(a.at("low"), a.at("high"), in[0].shape(),
                  {.dtype = in[0].dtype(), .device = in[0].device()})};
}
// Whether the elements lie in memory as they are counted, with gaps or without.
inline bool lies_in_order(const Tensor& x) {
  if (!x.defined()) return true;  // which is for the operator to say
  int64_t before = std::numeric_limits<int64_t>::max();
  for (size_t d = 0; d < x.shape().size(); ++d) {
    if (x.shape()[d] == 1 || x.strides()[d] == 0) continue;
    if (x.strides()[d] > before) return false;
    before = x.strides()[d];
  }
  return true;
}
// Which elements are dropped goes by their order in memory, and on the reference device all inputs
// are row-major.
inline List call_dropout(const json& a, const List& in) {
  manual_seed(10);
  return {dropout(lies_in_order(in[0]) ? in[0] : in[0].contiguous(), a.at("p"))};
}

inline List call_bernoulli(const json&, const List& in) {
  manual_seed(11);
  return {bernoulli(in[0])};
}

inline List call_multinomial(const json& a, const List& in) {
  manual_seed(14);
  return {multinomial(in[0], a.at("num_samples"), a.at("replacement"))};
}

inline std::vector<Line> random_cases() {
  const std::vector<Variant> shapes = {{"", {{}}},  {"", {{7}}}, {"", {{0, 3}}}, {"", {{1}}},
                                       {"", {{4}}}, {"", {{5}}}, {"", {{1023}}}, {"", {{20001}}}};
  const char* const seeded = "PyTorch draws other numbers";
  // clang-format off
  return {
      {"uniform", call_uniform, kReals, shapes, kExact, {.difference = 0, .no_reference = seeded}},
      {"normal", call_normal, kReals, shapes, kExact, {.difference = 0, .no_reference = seeded}},
      {"randint", call_randint, set_of({i64, i32}), {{"{'low': -3, 'high': 4}", {{1031}}}, {"{'low': 0, 'high': 10}", {{4099}}}, {"{'low': -2147483648, 'high': 2147483647}", {{4099}}},
        {"{'low': -9223372036854775808, 'high': 9223372036854775807}", {{4099}}, set_of({i64})}}, {.difference = 0, .no_reference = seeded}},
      {"dropout", call_dropout, kReals,
       {{"{'p': 0.4}", {{20}}}, {"{'p': 0.1}", {{1031}}}, {"{'p': 0.5}", {{64, 96}}}, {"{'p': 1.0}", {{7}}}, {"{'p': 0.5}", {{0}}}, {"{'p': 0.1}", {{3, 1367}}}},
       kExact, {.types_of_cpu = kHalves, .values = Values::ordinary, .no_reference = seeded}},
      {"multinomial", call_multinomial, kReals, {{"{'num_samples': 3, 'replacement': false}", {{7}}}, {"{'num_samples': 1, 'replacement': false}", {{5, 31}}}, {"{'num_samples': 40, 'replacement': true}", {{5, 31}}}}, kExact, {.difference = 0, .values = Values::positive, .no_reference = seeded}},
      {"bernoulli", call_bernoulli, kReals, {{"", {{}}}, {"", {{1031}}}, {"", {{0, 3}}}}, kExact, {.difference = 0, .no_reference = seeded}},
  };
  // clang-format on
}

}  // namespace tenon::conformance
