// Functions of two real numbers (core/ops/arithmetic.h, core/ops/special.h).
#include <tenon/core/dispatch/replica.h>
#include <tenon/core/ops/arithmetic.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/pointwise/binary.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/special.h>

namespace tenon {

namespace {

OpSpec of_two(const char* name, GradRule gradient, const char* inputs = "a b") {
  return {
      .name = name,
      .inputs = inputs,
      .infer = infer_float,
      .gradient = gradient,
      .saves_inputs = 3,
      .pointwise = true,
      .promotion = Promotion::floating,
      .number_for = 1,
  };
}

void atan2_gradient(const GradContext& c, Grads g) {
  const Tensor &y = c.input(0), &x = c.input(1);
  const Tensor length = square(y) + square(x), none = eq(length, 0.0);
  // At the origin it is 0, as in PyTorch.
  const Tensor scaled = where(none, 0.0, c.grad() / where(none, 1.0, length));
  if (c.needs(0)) g[0] = first(c, scaled * x);
  if (c.needs(1)) g[1] = second(c, neg(scaled * y));
}
// | `atan2 hypot copysign logaddexp xlogy` | a, b? -> y | as `add` | floats. `logaddexp` of equal
//   infinities is that infinity; `xlogy` is 0 where a is 0 and b is not NaN |
const Op atan2_op{of_two("atan2", atan2_gradient, "y x")};

void hypot_gradient(const GradContext& c, Grads g) {
  const Tensor& y = c.output(0);
  if (c.needs(0)) g[0] = first(c, c.grad() * (c.input(0) / y));
  if (c.needs(1)) g[1] = second(c, c.grad() * (c.input(1) / y));
}
OpSpec hypot_spec() {
  auto spec = of_two("hypot", hypot_gradient);
  spec.saves_outputs = 1;
  return spec;
}
const Op hypot_op{hypot_spec()};

void copysign_gradient(const GradContext& c, Grads g) {
  const Tensor &a = c.input(0), &y = c.output(0);
  if (c.needs(0)) {
    const Tensor zero = eq(a, 0.0);
    g[0] = first(c, where(zero, 0.0, c.grad() * (y / where(zero, 1.0, a)).detach()));
  }
  if (c.needs(1)) g[1] = second(c, zeros_like(c.grad()));
}
OpSpec copysign_spec() {
  auto spec = of_two("copysign", copysign_gradient);
  spec.saves_outputs = 1;
  return spec;
}
const Op copysign_op{copysign_spec()};

// The share of each is its part of exp(a) + exp(b).
void logaddexp_gradient(const GradContext& c, Grads g) {
  const Tensor &a = c.input(0), &b = c.input(1);
  const Tensor both = logical_and(eq(a, b), isinf(a));  // infinities have no difference
  const Tensor apart = where(both, 0.0, a) - where(both, 0.0, b);
  if (c.needs(0)) g[0] = first(c, c.grad() * sigmoid(apart));
  if (c.needs(1)) g[1] = second(c, c.grad() * sigmoid(neg(apart)));
}
const Op logaddexp_op{of_two("logaddexp", logaddexp_gradient)};

void xlogy_gradient(const GradContext& c, Grads g) {
  const Tensor &x = c.input(0), &y = c.input(1);
  if (c.needs(0)) {
    const Tensor flat = logical_and(eq(x, 0.0), le(y, 0.0));
    // A gradient of 0 stays that where the logarithm is infinite.
    g[0] = first(c, where(flat, 0.0, xlogy(c.grad(), where(flat, 1.0, y))));
  }
  if (c.needs(1)) g[1] = second(c, c.grad() * (x / y));
}
const Op xlogy_op{of_two("xlogy", xlogy_gradient, "x y")};

// A number beside x, in the dtype that both compute in.
Tensor beside(const Tensor& x, Number number) {
  const DType type = dtype_of(x);
  return constant(number, is_floating_point(type) ? type : DType::f32, device_read_on(x));
}

}  // namespace

Tensor atan2(const Tensor& y, const Tensor& x) { return run_binary(atan2_op, y, x); }
Tensor hypot(const Tensor& a, const Tensor& b) { return run_binary(hypot_op, a, b); }
Tensor logaddexp(const Tensor& a, const Tensor& b) { return run_binary(logaddexp_op, a, b); }
Tensor copysign(const Tensor& a, const Tensor& b) { return run_binary(copysign_op, a, b); }
Tensor copysign(const Tensor& a, Number b) { return float_binary(copysign_op, a, b); }
Tensor xlogy(const Tensor& x, const Tensor& y) { return run_binary(xlogy_op, x, y); }
Tensor xlogy(const Tensor& x, Number y) {
  require_tensor("xlogy", x);
  return xlogy(x, beside(x, y));
}
Tensor xlogy(Number x, const Tensor& y) {
  require_tensor("xlogy", y, "y");
  return xlogy(beside(y, x), y);
}

}  // namespace tenon
