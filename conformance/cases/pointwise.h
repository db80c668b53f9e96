// The pointwise operators: a line each, and one more where an operand is a number.
#pragma once

#include <tenon/conformance/case.h>
#include <tenon/conformance/cases/pointwise_activation.h>
#include <tenon/conformance/cases/pointwise_fused.h>
#include <tenon/conformance/cases/pointwise_special.h>
#include <tenon/core/ops/pointwise.h>

namespace tenon::conformance {

inline List call_gelu(const json& a, const List& in) {
  return {gelu(in[0], a.value("approximate", "none"))};
}
inline List call_clamp(const json& a, const List& in) {
  std::optional<Number> low, high;
  if (a.contains("min")) low = number_of(a.at("min"));
  if (a.contains("max")) high = number_of(a.at("max"));
  return {clamp(in[0], low, high)};
}
inline List call_pow_scalar(const json& a, const List& in) {
  return {pow(in[0], a.at("exponent").get<double>())};
}
inline List call_where(const json&, const List& in) { return {where(in[0], in[1], in[2])}; }
// A number in the second's or in the third's place.
inline List call_where_number(const json& a, const List& in) {
  const Number n = number_of(a.at("number"));
  return {where(in[0], in[1], n), where(in[0], n, in[1])};
}

// Real numbers as an operand, on shapes that take turns.
inline std::vector<Variant> real_numbers() {
  return {{"{'number': 0.0}", {{2, 5}}},      {"{'number': 2.0}", {{}}},
          {"{'number': 3.0}", {{3, 33, 65}}}, {"{'number': 0.5}", {{64, 96}}},
          {"{'number': -1.0}", {{0, 3}}},     {"{'number': -2.5}", {{1031}}},
          {"{'number': 1e30}", {{64}}},       {"{'number': 'nan'}", {{2, 5, 28, 4}}}};
}
inline std::vector<Variant> whole_numbers() {
  return {{"{'number': 0}", {{64, 96}}},
          {"{'number': 3}", {{2, 5}}},
          {"{'number': -7}", {{1031}}, kAll & ~set_of({u8})},
          {"{'number': 250}", {{3, 33, 65}}}};
}
inline std::vector<Variant> whole_exponents() {
  return {{"{'number': 0}", {{64, 96}}}, {"{'number': 3}", {{7}}}, {"{'number': 250}", {{1031}}}};
}
// Bases of which every power has a gradient.
inline std::vector<Variant> positive_bases() {
  auto variants = real_numbers();
  variants.push_back({"{'number': -1.5}", {positive_in({6})}});
  variants.push_back({"{'number': 1.0}", {positive_in({6})}});
  variants.push_back({"{'number': 2.0}", {positive_in({6})}});
  variants[0].in = {positive_in({2, 5})};
  variants[1].in = {positive_in({7})};
  return variants;
}
inline std::vector<Variant> with_positive_first(std::vector<Variant> variants) {
  variants[2].in[0].values = Values::positive;
  variants[0].in[0].values = variants[1].in[0].values = Values::positive;
  return variants;
}
inline std::vector<Variant> of_three() {
  return {{"", {flags({2, 1, 3}), {4, 1}, {1, 4, 3}}},
          {"", {flags({}), {}, {}}},
          {"", {flags({0, 3}), {1, 3}, {1}}},
          {"", {flags({1031}), {1031}, {1031}}},
          {"", {flags({64, 96}), {64, 96}, {96}}},
          {"", {flags({3, 33, 65}), {3, 33, 65}, {3, 33, 65}}},
          {"", {flags({2, 5, 28, 4}), {2, 5, 1, 1}, {2, 5, 28, 4}}}};
}
inline std::vector<Variant> and_many(std::vector<Variant> variants) {
  // Above what one wave of blocks covers, with a ragged end.
  variants.push_back({"", {{300007}, {300007}}, kF32});
  return variants;
}

inline std::vector<Line> pointwise_cases() {
  const auto one_shapes = shapes_of_one(), two_shapes = shapes_of_two();
  const char* const numbers = "a number as an operand";
  // clang-format off
  std::vector<Line> lines = {
      {"abs", one(abs), kNumbers, one_shapes},
      {"neg", one(neg), kNumbers, one_shapes},
      {"sign", one(sign), kNumbers, one_shapes},
      {"square", one(square), kNumbers, one_shapes},
      {"reciprocal", one(reciprocal), kFloats, one_shapes},
      {"exp", one(exp), kFloats, one_shapes},
      {"log", one(log), kFloats, one_shapes, {.values = Values::positive}},
      {"sqrt", one(sqrt), kFloats, one_shapes, {.values = Values::positive}},
      {"rsqrt", one(rsqrt), kFloats, one_shapes, {.values = Values::positive}},
      {"sin", one(sin), kFloats, one_shapes},
      {"cos", one(cos), kFloats, one_shapes},
      {"tanh", one(tanh), kFloats, one_shapes},
      {"sigmoid", one(sigmoid), kFloats, one_shapes},
      {"erf", one(erf), kFloats, one_shapes},
      {"floor", one(floor), kFloats, one_shapes},
      {"ceil", one(ceil), kFloats, one_shapes},
      {"round", one(round), kFloats, one_shapes},
      {"relu", one(relu), kNumbers, one_shapes},
      {"silu", one(silu), kFloats, one_shapes},
      {"gelu", call_gelu, kFloats,
       {{"{'approximate': 'none'}", {{2, 5}}}, {"{'approximate': 'none'}", {{3, 33, 65}}},
        {"{'approximate': 'none'}", {{64, 96}}}, {"{'approximate': 'none'}", {{0, 3}}}}},
      {"gelu", call_gelu, kFloats,
       {{"{'approximate': 'tanh'}", {{2, 5}}}, {"{'approximate': 'tanh'}", {{1031}}},
        {"{'approximate': 'tanh'}", {{3, 33, 65}}}, {"{'approximate': 'tanh'}", {{0, 3}}}},
       {.no_reference = "both forms are in the file of gelu", .op = "gelu_tanh"}},
      {"logical_not", one(logical_not), kAll, one_shapes, {.difference = 0, .no_reference = "values are those of eq with 0"}},
      {"clamp", call_clamp, kFloats,
       {{"{'min': -0.5, 'max': 0.7}", {{2, 5}}}, {"{'min': -0.75, 'max': 1.5}", {{3, 33, 65}}},
        {"{'min': 2, 'max': -2}", {{1031}}}, {"{'min': 2}", {{64, 96}}}, {"{'max': 3}", {{2, 5, 28, 4}}}}},
      {"clamp", call_clamp, kIntegers,
       {{"{'min': 2}", {{64, 96}}}, {"{'max': 3}", {{1031}}}, {"{'min': 2, 'max': -2}", {{7}}},
        {"{'min': -1000000000, 'max': 1000000000000}", {{3, 33, 65}}}},
       {.difference = 0, .no_reference = "whole numbers"}},

      {"add", two(add), kNumbers, and_many(two_shapes)},
      {"sub", two(sub), kNumbers, two_shapes, {.every_layout = true}},
      {"mul", two(mul), kNumbers, two_shapes},
      {"div", two(div), kFloats, two_shapes},
      {"maximum", two(maximum), kNumbers, two_shapes},
      {"minimum", two(minimum), kNumbers, two_shapes},
      {"pow", two(pow), kNumbers, with_positive_first(two_shapes), kPowers},
      {"eq", two(eq), kAll, two_shapes, {.difference = 0}},
      {"ne", two(ne), kAll, two_shapes, {.difference = 0}},
      {"lt", two(lt), kAll, two_shapes, {.difference = 0}},
      {"le", two(le), kAll, two_shapes, {.difference = 0}},
      {"gt", two(gt), kAll, two_shapes, {.difference = 0}},
      {"ge", two(ge), kAll, two_shapes, {.difference = 0}},
      {"logical_and", two(logical_and), kAll, two_shapes, {.difference = 0}},
      {"logical_or", two(logical_or), kAll, two_shapes, {.difference = 0}},
      {"logical_xor", two(logical_xor), kAll, two_shapes, {.difference = 0}},
      {"where", call_where, kAll, of_three()},
      {"pow_scalar", call_pow_scalar, kFloats, {{"{'exponent': 2.5}", {positive_in({6})}}, {"{'exponent': 3.0}", {{64, 96}}}}, kPowers},

      {"add", with_number(add), kFloats, real_numbers(), {.no_reference = numbers}},
      {"sub", with_number(sub), kFloats, real_numbers(), {.no_reference = numbers}},
      {"sub", number_first(sub), kFloats, real_numbers(), {.no_reference = numbers}},
      {"mul", with_number(mul), kFloats, real_numbers(), {.no_reference = numbers}},
      {"div", with_number(div), kFloats, real_numbers(), {.difference = 0, .no_reference = numbers}},
      {"div", with_number(div), kFloats, {{"{'number': 2.5}", {{6}}}}, {.no_reference = numbers}},
      {"div", number_first(div), kFloats, {{"{'number': 2.5}", {positive_in({6})}}, {"{'number': -1.0}", {{64, 96}}}, {"{'number': 0.0}", {{1031}}}}, {.no_reference = numbers}},
      {"maximum", with_number(maximum), kFloats, real_numbers(), {.no_reference = numbers}},
      {"minimum", with_number(minimum), kFloats, real_numbers(), {.no_reference = numbers}},
      {"pow", with_number(pow), kFloats, positive_bases(), kPowers, {.no_reference = numbers}},
      {"pow", number_first(pow), kFloats, {{"{'number': 1.7}", {{6}}}, {"{'number': 3.0}", {{64, 96}}}, {"{'number': 0.5}", {{1031}}}}, kPowers, {.no_reference = numbers}},
      {"lt", with_number(lt), kFloats, real_numbers(), {.difference = 0, .no_reference = numbers}},
      {"eq", with_number(eq), kFloats, real_numbers(), {.difference = 0, .no_reference = numbers}},
      {"where", call_where_number, kFloats, {{"{'number': 3.0}", {flags({6}), {6}}}, {"{'number': 3.0}", {flags({64, 96}), {64, 96}}}}, {.no_reference = numbers}},
      {"add", with_number(add), kIntegers, whole_numbers(), {.difference = 0, .no_reference = numbers}},
      {"sub", number_first(sub), kIntegers, whole_numbers(), {.difference = 0, .no_reference = numbers}},
      {"mul", with_number(mul), kIntegers, whole_numbers(), {.difference = 0, .no_reference = numbers}},
      {"minimum", with_number(minimum), kIntegers, whole_numbers(), {.difference = 0, .no_reference = numbers}},
      {"ge", with_number(ge), kAll, whole_numbers(), {.difference = 0, .no_reference = numbers}},
      {"pow", number_first(pow), kIntegers, whole_numbers(), {.difference = 0, .no_reference = numbers}},
      {"pow", with_number(pow), kIntegers, whole_exponents(), {.difference = 0, .no_reference = numbers}},
  };
  // clang-format on
  for (auto& more : {activation_lines(), special_lines(), fused_lines()})
    lines.insert(lines.end(), more.begin(), more.end());
  return lines;
}

}  // namespace tenon::conformance
