// Programs of the operator `fused`: part of the pointwise family.
#pragma once

#include <tenon/conformance/case.h>
#include <tenon/conformance/fused.h>

namespace tenon::conformance {

// Made of primitives.
inline List call_fused_gelu(const json&, const List& in) {
  FusedCase c;
  const auto x = c.in(in[0]);
  const auto erf = c.of("erf", {c.with("mul", x, 0.70710678118654752)});
  c.out(c.of("mul", {c.with("mul", x, 0.5), c.with("add", erf, 1)}));
  return c.run();
}
// Normalizes x by statistics of its rows, with a weight and bias of its columns: what is the same
// for a whole row is computed once.
inline List call_fused_norm(const json&, const List& in) {
  FusedCase c;
  const auto x = c.in(in[0]), mean = c.in(in[1]), var = c.in(in[2]), weight = c.in(in[3]),
             bias = c.in(in[4]);
  const auto scale = c.of("rsqrt", {c.with("add", var, 1e-5)});
  const auto y = c.of("mul", {c.of("sub", {x, mean}), scale});
  c.out(c.of("add", {c.of("mul", {y, weight}), bias}));
  c.out(y);
  return c.run();
}
// A step of Adam that changes its parameter and both averages.
inline List call_fused_adam(const json&, const List& in) {
  FusedCase c;
  const auto p = c.in_copy(in[0]), g = c.in(in[1]), m = c.in_copy(in[2]), v = c.in_copy(in[3]);
  const auto m2 = c.of("add", {c.with("mul", m, 0.9), c.with("mul", g, 0.1)});
  const auto v2 = c.of("add", {c.with("mul", v, 0.999), c.with("mul", c.of("square", {g}), 1e-3)});
  const auto root = c.with("add", c.of("sqrt", {v2}), 1e-8);
  c.out(c.of("sub", {p, c.of("div", {c.with("mul", m2, 1e-2), root})}), p);
  c.out(m2, m);
  c.out(v2, v);
  return c.run();
}
// Comparisons, choices, powers and other dtypes in between.
inline List call_fused_choices(const json&, const List& in) {
  FusedCase c;
  const auto a = c.in(in[0]), b = c.in(in[1]);
  const auto less = c.of("lt", {a, b}), neither = c.of("logical_not", {less});
  const auto power = c.of("pow", {c.of("abs", {a}), c.of("clamp", {b}, {-2, 2})});
  const auto chosen = c.of("where", {neither, power, c.of("lerp", {a, b, {}}, {0.3})});
  const auto wide = c.cast(chosen, f64);
  c.out(c.cast(c.after(1, "sub", wide), f32));
  c.out(c.of("logical_or", {less, c.with("gt", wide, 0.5)}));
  c.out(chosen);
  return c.run();
}
// A program of whole numbers and flags.
inline List call_fused_whole(const json&, const List& in) {
  FusedCase c;
  const auto a = c.in(in[0]), b = c.in(in[1]);
  const auto sum = c.of("add", {a, b}), bits = c.of("bitwise_xor", {sum, c.of("maximum", {a, b})});
  c.out(bits);
  c.out(c.of("eq", {bits, a}));
  c.out(c.cast(c.of("minimum", {bits, b}), f32));
  return c.run();
}
// A member that backends need not have: where they refuse it, it is made of others.
inline List call_fused_rare(const json&, const List& in) {
  FusedCase c;
  const auto x = c.in(in[0]), target = c.in(in[1]);
  c.out(c.with("mul", c.of("binary_cross_entropy", {c.of("sigmoid", {x}), target}), 2));
  return c.run();
}

inline std::vector<Line> fused_lines() {
  const auto one_shapes = shapes_of_one(), two_shapes = shapes_of_two();
  const auto of_norm = [](int64_t n, int64_t size) -> Variant {
    return {"", {{n, size}, {n, 1}, positive_in({n, 1}), {size}, {size}}};
  };
  const std::vector<Variant> of_adam = {
      {"", {{7}, {7}, {7}, positive_in({7})}},
      {"", {{0, 3}, {0, 3}, {0, 3}, {0, 3}}},
      {"", {{64, 96}, {64, 96}, {64, 96}, positive_in({64, 96})}}};
  const char* const members = "it is compared with its members, bit for bit";
  // clang-format off
  return {
      {"fused", call_fused_gelu, kFloats, one_shapes, {.difference = 0, .no_reference = members}},
      {"fused", call_fused_norm, kReals, {of_norm(5, 7), of_norm(1, 1), of_norm(0, 3), of_norm(33, 65), of_norm(3, 1031), of_norm(64, 5000)}, {.difference = 0, .no_reference = members}},
      {"fused", call_fused_adam, kFloats, of_adam, {.difference = 0, .no_reference = members}},
      {"fused", call_fused_choices, kReals, two_shapes, kPowers, {.difference = 0, .values = Values::ordinary, .no_reference = members}},
      {"fused", call_fused_whole, kIntegers | kBool, two_shapes, {.difference = 0, .no_reference = members}},
      {"fused", call_fused_rare, kReals, {{"", {{7}, {7}}}, {"", {{64, 96}, {64, 96}}}}, kPowers, {.difference = 0, .values = Values::ordinary, .no_reference = members}},
  };
  // clang-format on
}

}  // namespace tenon::conformance
