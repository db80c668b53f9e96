// The activations of core/ops/activation.h, part of the pointwise family.
#pragma once

#include <tenon/conformance/case.h>
#include <tenon/core/ops/activation.h>

namespace tenon::conformance {

inline List call_elu(const json& a, const List& in) { return {elu(in[0], a.value("alpha", 1.0))}; }
inline List call_celu(const json& a, const List& in) {
  return {celu(in[0], a.value("alpha", 1.0))};
}
inline List call_leaky_relu(const json& a, const List& in) {
  return {leaky_relu(in[0], a.value("negative_slope", 0.01))};
}
inline List call_softplus(const json& a, const List& in) {
  return {softplus(in[0], a.value("beta", 1.0), a.value("threshold", 20.0))};
}
inline List call_hardtanh(const json& a, const List& in) {
  return {hardtanh(in[0], a.value("min_val", -1.0), a.value("max_val", 1.0))};
}
inline List call_hardshrink(const json& a, const List& in) {
  return {hardshrink(in[0], a.value("lambd", 0.5))};
}
inline List call_softshrink(const json& a, const List& in) {
  return {softshrink(in[0], a.value("lambd", 0.5))};
}
inline List call_threshold(const json& a, const List& in) {
  return {threshold(in[0], a.at("threshold"), a.at("value"))};
}
inline List call_glu(const json& a, const List& in) {
  return {glu(in[0], a.value("dim", int64_t{-1}))};
}

// The shapes of one tensor, with arguments that take turns.
inline std::vector<Variant> one_with(std::initializer_list<const char*> args) {
  auto variants = shapes_of_one();
  for (size_t i = 0; i < variants.size(); ++i) variants[i].args = args.begin()[i % args.size()];
  return variants;
}
inline std::vector<Variant> halved() {
  return {{"{'dim': -1}", {{2, 6}}},       {"{'dim': 0}", {{4, 3}}},
          {"{'dim': 1}", {{2, 0, 3}}},     {"{'dim': 1}", {{3, 34, 65}}},
          {"{'dim': -1}", {{64, 96}}},     {"{'dim': 0}", {{1030}}},
          {"{'dim': 2}", {{2, 5, 28, 4}}}, {"", {{2}}}};
}
inline std::vector<Variant> with_slopes() {
  return {{"", {{2, 5}, {1}}},    {"", {{2, 5}, {5}}},       {"", {{}, {}}},
          {"", {{7}, {1}}},       {"", {{0, 3}, {3}}},       {"", {{3, 33, 65}, {33}}},
          {"", {{64, 96}, {96}}}, {"", {{2, 5, 28, 4}, {5}}}};
}

inline std::vector<Line> activation_lines() {
  const auto one_shapes = shapes_of_one();
  // clang-format off
  return {
      {"elu", call_elu, kFloats, one_with({"{'alpha': 1.0}", "{'alpha': 0.5}"})},
      {"selu", one(selu), kFloats, one_shapes},
      {"celu", call_celu, kFloats, one_with({"{'alpha': 1.0}", "{'alpha': 0.7}", "{'alpha': 2.5}"})},
      {"leaky_relu", call_leaky_relu, kFloats, one_with({"{'negative_slope': 0.01}", "{'negative_slope': 0.2}"})},
      {"prelu", two(prelu), kFloats, with_slopes()},
      {"softplus", call_softplus, kFloats, one_with({"", "{'beta': 2.0, 'threshold': 1.7}", "{'beta': 0.5}"})},
      {"logsigmoid", one(logsigmoid), kFloats, one_shapes},
      {"mish", one(mish), kFloats, one_shapes},
      {"hardsigmoid", one(hardsigmoid), kFloats, one_shapes},
      {"hardswish", one(hardswish), kFloats, one_shapes},
      {"hardtanh", call_hardtanh, kFloats, one_with({"", "{'min_val': -0.4, 'max_val': 1.3}"})},
      {"hardtanh", call_hardtanh, kIntegers, one_with({"{'min_val': 1, 'max_val': 3}"}), {.difference = 0, .no_reference = "whole numbers"}},
      {"relu6", one(relu6), kNumbers, one_shapes},
      {"hardshrink", call_hardshrink, kFloats, one_with({"", "{'lambd': 1.3}"})},
      {"softshrink", call_softshrink, kFloats, one_with({"", "{'lambd': 0.0}", "{'lambd': 1.3}"})},
      {"threshold", call_threshold, kFloats, one_with({"{'threshold': 0.1, 'value': 20.0}", "{'threshold': -1.2, 'value': -3.0}"})},
      {"tanhshrink", one(tanhshrink), kFloats, one_shapes},
      {"softsign", one(softsign), kFloats, one_shapes},
      {"glu", call_glu, kFloats, halved()},
      {"softmin", along(softmin), kReals, {{"{'dim': -1}", {{2, 5}}}, {"{'dim': 0}", {{7, 3}}}, {"{'dim': 1}", {{3, 33, 65}}}}, kSums, {.types_of_cpu = kHalves, .values = Values::ordinary}},
  };
  // clang-format on
}

}  // namespace tenon::conformance
