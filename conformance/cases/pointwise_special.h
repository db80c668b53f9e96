// The functions of core/ops/special.h, and of core/ops/arithmetic.h: pointwise operators too.
#pragma once

#include <tenon/conformance/case.h>
#include <tenon/core/ops/arithmetic.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/special.h>

namespace tenon::conformance {

inline List call_logit(const json& a, const List& in) {
  return {a.contains("eps") ? logit(in[0], a.at("eps").get<double>()) : logit(in[0])};
}
inline List call_polygamma(const json& a, const List& in) { return {polygamma(a.at("n"), in[0])}; }
inline List call_nan_to_num(const json& a, const List& in) {
  auto optional = [&](const char* name) {
    return a.contains(name) ? std::optional<double>(a.at(name)) : std::nullopt;
  };
  return {nan_to_num(in[0], a.value("nan", 0.0), optional("posinf"), optional("neginf"))};
}
inline List call_lerp(const json& a, const List& in) {
  return {a.contains("weight") ? lerp(in[0], in[1], a.at("weight").get<double>())
                               : lerp(in[0], in[1], in[2])};
}
inline List call_addcmul(const json& a, const List& in) {
  return {addcmul(in[0], in[1], in[2], number_of(a.value("value", json(1))))};
}
inline List call_addcdiv(const json& a, const List& in) {
  return {addcdiv(in[0], in[1], in[2], number_of(a.value("value", json(1))))};
}
inline List call_div_rounded(const json& a, const List& in) {
  return {div(in[0], in[1], a.at("rounding_mode").get<std::string>())};
}
inline List call_isclose(const json& a, const List& in) {
  return {isclose(in[0], in[1], a.value("rtol", 1e-5), a.value("atol", 1e-8),
                  a.value("equal_nan", false))};
}
// Calls functions with arguments that lie where they have values and a slope.
inline List call_inverses_inside(const json&, const List& in) {
  const Tensor inside = in[0] * 0.6;
  return {asin(inside), acos(inside), atanh(inside), erfinv(inside), logit(inside * 0.5 + 0.5)};
}
inline List call_acosh_above(const json&, const List& in) { return {acosh(square(in[0]) + 1.1)}; }
inline List call_quotients(const json&, const List& in) {
  return {fmod(in[0], in[1]), remainder(in[0], in[1]), remainder(2.9, in[1])};
}

inline std::vector<Variant> with_args(std::vector<Variant> variants,
                                      std::initializer_list<const char*> args) {
  for (size_t i = 0; i < variants.size(); ++i) variants[i].args = args.begin()[i % args.size()];
  return variants;
}
// Three tensors that broadcast.
inline std::vector<Variant> three() {
  return {{"", {{2, 1, 3}, {4, 1}, {1, 4, 3}}}, {"", {{}, {}, {}}},
          {"", {{0, 3}, {1, 3}, {3}}},          {"", {{1031}, {1031}, {1}}},
          {"", {{64, 96}, {64, 96}, {64, 96}}}, {"", {{3, 33, 65}, {33, 1}, {3, 33, 65}}}};
}
inline std::vector<Line> special_lines() {
  const auto one_shapes = shapes_of_one(), two_shapes = shapes_of_two();
  const std::vector<Variant> few = {{"", {{7}}}, {"", {{2, 5}}}, {"", {{}}}};
  const std::vector<Variant> few_pairs = {{"", {{7}, {7}}}, {"", {{2, 1, 3}, {4, 1}}}};
  const char* const numbers = "a number as an operand";
  const char* const range = "where the functions of lines above have a slope";
  // clang-format off
  return {
      {"expm1", one(expm1), kFloats, one_shapes},
      {"log1p", one(log1p), kFloats, one_shapes, {.values = Values::positive}},
      {"exp2", one(exp2), kFloats, one_shapes},
      {"log2", one(log2), kFloats, one_shapes, {.values = Values::positive}},
      {"log10", one(log10), kFloats, one_shapes, {.values = Values::positive}},
      {"tan", one(tan), kFloats, one_shapes, kPowers, {.values = Values::ordinary}},
      {"atan", one(atan), kFloats, one_shapes},
      {"sinh", one(sinh), kFloats, one_shapes},
      {"cosh", one(cosh), kFloats, one_shapes},
      {"asinh", one(asinh), kFloats, one_shapes},
      {"erfc", one(erfc), kFloats, one_shapes},
      {"trunc", one(trunc), kNumbers, one_shapes},
      {"frac", one(frac), kNumbers, one_shapes},
      {"sinc", one(sinc), kFloats, one_shapes, kPowers, {.values = Values::ordinary}},
      {"lgamma", one(lgamma), kReals, one_shapes, kPowers, {.types_of_cpu = kHalves, .values = Values::positive}},
      {"digamma", one(digamma), kReals, one_shapes, kPowers, {.types_of_cpu = kHalves, .values = Values::positive}},
      {"polygamma", call_polygamma, kReals, with_args(one_shapes, {"{'n': 1}", "{'n': 2}", "{'n': 4}"}), kPowers, {.values = Values::positive}},
      {"asin", one(asin), kReals, one_shapes, {.difference = 0, .types_of_cpu = kHalves}},
      {"acos", one(acos), kReals, one_shapes, {.difference = 0, .types_of_cpu = kHalves}},
      {"acosh", one(acosh), kReals, one_shapes, {.difference = 0, .types_of_cpu = kHalves}},
      {"atanh", one(atanh), kReals, one_shapes, {.difference = 0, .types_of_cpu = kHalves}},
      {"erfinv", one(erfinv), kReals, one_shapes, {.difference = 0, .types_of_cpu = kHalves}},
      {"logit", call_logit, kReals, with_args(one_shapes, {"", "{'eps': 0.2}"}), {.difference = 0, .types_of_cpu = kHalves}},
      {"asin", call_inverses_inside, kReals, few, kPowers, {.difference = 2e-5, .types_of_cpu = kHalves, .values = Values::near_one, .no_reference = range}},
      {"acosh", call_acosh_above, kReals, few, kPowers, {.types_of_cpu = kHalves, .values = Values::ordinary, .no_reference = range}},

      {"atan2", two(atan2), kFloats, two_shapes},
      {"hypot", two(hypot), kFloats, two_shapes},
      {"copysign", two(copysign), kFloats, two_shapes},
      {"logaddexp", two(logaddexp), kFloats, two_shapes},
      {"xlogy", two(xlogy), kFloats, two_shapes, {.values = Values::positive}},
      {"xlogy", with_number(xlogy), kFloats, {{"{'number': 2.5}", {{6}}}, {"{'number': 0.0}", {{64, 96}}}}, {.no_reference = numbers}},
      {"xlogy", number_first(xlogy), kFloats, {{"{'number': 2.5}", {positive_in({6})}}, {"{'number': 0.0}", {{64, 96}}}}, {.no_reference = numbers}},
      {"copysign", with_number(copysign), kFloats, {{"{'number': -2.5}", {{6}}}, {"{'number': 0.0}", {{64, 96}}}}, {.no_reference = numbers}},
      {"fmod", two(fmod), kNumbers, two_shapes, {.difference = 0}},
      {"remainder", two(remainder), kNumbers, two_shapes, {.difference = 0}},
      {"floor_divide", two(floor_divide), kNumbers, two_shapes, {.difference = 0}},
      {"div_rounded", call_div_rounded, kNumbers, with_args(two_shapes, {"{'rounding_mode': 'trunc'}", "{'rounding_mode': 'floor'}"}), {.difference = 0, .no_reference = "the cases are those of floor_divide; see divide_test.cpp"}},
      {"fmod", call_quotients, kReals, few_pairs, kPowers, {.values = Values::ordinary, .no_reference = "gradients of both operands"}},
      {"fmod", with_number(fmod), kNumbers, {{"{'number': 3}", {{6}}}, {"{'number': 7}", {{64, 96}}}}, {.difference = 0, .no_reference = numbers}},
      {"remainder", with_number(remainder), kNumbers, {{"{'number': 3}", {{6}}}, {"{'number': 7}", {{64, 96}}}}, {.difference = 0, .no_reference = numbers}},
      {"remainder", number_first(remainder), kNumbers, {{"{'number': 100}", {{6}}}, {"{'number': 7}", {{64, 96}}}}, {.difference = 0, .no_reference = numbers}},
      {"floor_divide", two(floor_divide), kReals, {{"", {{6}, {6}}}}, {.values = Values::ordinary, .no_reference = "the line above"}},
      {"floor_divide", with_number(floor_divide), kNumbers, {{"{'number': 3}", {{6}}}, {"{'number': 7}", {{64, 96}}}}, {.difference = 0, .no_reference = numbers}},
      {"heaviside", two(heaviside), kAll, two_shapes, {.difference = 0}},

      {"lerp", call_lerp, kFloats, three(), {.values = Values::sums}},
      {"lerp", call_lerp, kFloats, with_args(two_shapes, {"{'weight': 0.3}", "{'weight': 1.7}"}), {.values = Values::sums, .no_reference = numbers}},
      {"addcmul", call_addcmul, kNumbers, with_args(three(), {"", "{'value': 3}"}), {.values = Values::ordinary}},
      {"addcdiv", call_addcdiv, kFloats, with_args(three(), {"", "{'value': -0.5}"}), {.values = Values::ordinary}},

      {"bitwise_and", two(bitwise_and), kIntegers | kBool, two_shapes, {.difference = 0}},
      {"bitwise_or", two(bitwise_or), kIntegers | kBool, two_shapes, {.difference = 0}},
      {"bitwise_xor", two(bitwise_xor), kIntegers | kBool, two_shapes, {.difference = 0}},
      {"bitwise_not", one(bitwise_not), kIntegers | kBool, one_shapes, {.difference = 0}},
      {"bitwise_left_shift", two(bitwise_left_shift), kIntegers, two_shapes, {.difference = 0}},
      {"bitwise_right_shift", two(bitwise_right_shift), kIntegers, two_shapes, {.difference = 0}},
      {"bitwise_and", with_number(bitwise_and), kIntegers, {{"{'number': 6}", {{64, 96}}}}, {.difference = 0, .no_reference = numbers}},
      {"bitwise_left_shift", with_number(bitwise_left_shift), kIntegers, {{"{'number': 3}", {{64, 96}}}}, {.difference = 0, .no_reference = numbers}},

      {"isnan", one(isnan), kAll, one_shapes, {.difference = 0}},
      {"isinf", one(isinf), kAll, one_shapes, {.difference = 0}},
      {"isfinite", one(isfinite), kAll, one_shapes, {.difference = 0}},
      {"isclose", call_isclose, kAll, with_args(two_shapes, {"", "{'rtol': 0.5}", "{'atol': 1.0, 'equal_nan': true}"}), {.difference = 0}},
      {"nan_to_num", call_nan_to_num, kNumbers, with_args(one_shapes, {"", "{'nan': 1.5, 'posinf': 3.0, 'neginf': -2.0}"})},
  };
  // clang-format on
}

}  // namespace tenon::conformance
