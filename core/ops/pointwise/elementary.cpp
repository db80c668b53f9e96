// Exponentials, logarithms, trigonometric and hyperbolic functions of one tensor
// (core/ops/special.h).
#include <numbers>

#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/pointwise/unary.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/special.h>

namespace tenon {

namespace {

// The gradient is made from the input or from the result.
OpSpec of_input(const char* name, GradRule gradient, DecomposeRule decompose = nullptr) {
  auto spec = floating_function(name, gradient);
  spec.saves_inputs = 1;
  spec.decompose = decompose;
  return spec;
}
OpSpec of_result(const char* name, GradRule gradient, DecomposeRule decompose = nullptr) {
  auto spec = floating_function(name, gradient);
  spec.saves_outputs = 1;
  spec.decompose = decompose;
  return spec;
}

// ---- exponentials and logarithms

void expm1_gradient(const GradContext& c, Grads g) { g[0] = c.grad() * (c.output(0) + 1.0); }
// Kahan's: with u = exp(x) as it was rounded, (u - 1) x / log(u).
void decompose_expm1(const Call& call, Outputs& out) {
  const Tensor& x = call.in(0);
  const Tensor u = exp(x), near_one = eq(u, 1.0), rest = u - 1.0;
  const Tensor small = le(abs(x), 30.0), safe = where(small, where(near_one, 2.0, u), 2.0);
  const Tensor y = rest * (x / log(safe));
  out.push_back(where(near_one, x, where(small, y, rest)));
}
// | `expm1 log1p exp2 log2 log10 tan asin acos atan sinh cosh asinh acosh atanh` | x -> y | |
//   floats. `expm1` and `log1p` are precise near 0 |
const Op expm1_op{wide_under_autocast(of_result("expm1", expm1_gradient, decompose_expm1))};

void log1p_gradient(const GradContext& c, Grads g) { g[0] = c.grad() / (c.input(0) + 1.0); }
// With u = 1 + x as it was rounded, log(u) x / (u - 1).
void decompose_log1p(const Call& call, Outputs& out) {
  const Tensor& x = call.in(0);
  const Tensor u = x + 1.0, near_one = eq(u, 1.0), rest = where(near_one, 1.0, u - 1.0);
  const Tensor small = le(abs(x), 1.0), y = log(u);
  out.push_back(where(near_one, x, where(small, y * (x / rest), y)));
}
const Op log1p_op{wide_under_autocast(of_input("log1p", log1p_gradient, decompose_log1p))};

void exp2_gradient(const GradContext& c, Grads g) {
  g[0] = c.grad() * (c.output(0) * std::numbers::ln2);
}
const Op exp2_op{wide_under_autocast(of_result("exp2", exp2_gradient))};

void log2_gradient(const GradContext& c, Grads g) {
  g[0] = c.grad() / (c.input(0) * std::numbers::ln2);
}
const Op log2_op{wide_under_autocast(of_input("log2", log2_gradient))};

void log10_gradient(const GradContext& c, Grads g) {
  g[0] = c.grad() / (c.input(0) * std::numbers::ln10);
}
const Op log10_op{wide_under_autocast(of_input("log10", log10_gradient))};

// ---- trigonometric functions

void tan_gradient(const GradContext& c, Grads g) { g[0] = c.grad() * (square(c.output(0)) + 1.0); }
const Op tan_op{wide_under_autocast(of_result("tan", tan_gradient))};

void asin_gradient(const GradContext& c, Grads g) {
  g[0] = c.grad() * rsqrt(1.0 - square(c.input(0)));
}
const Op asin_op{wide_under_autocast(of_input("asin", asin_gradient))};

void acos_gradient(const GradContext& c, Grads g) {
  g[0] = neg(c.grad() * rsqrt(1.0 - square(c.input(0))));
}
const Op acos_op{wide_under_autocast(of_input("acos", acos_gradient))};

void atan_gradient(const GradContext& c, Grads g) { g[0] = c.grad() / (square(c.input(0)) + 1.0); }
const Op atan_op{of_input("atan", atan_gradient)};

// ---- hyperbolic functions

void sinh_gradient(const GradContext& c, Grads g) { g[0] = c.grad() * cosh(c.input(0)); }
const Op sinh_op{wide_under_autocast(of_input("sinh", sinh_gradient))};

void cosh_gradient(const GradContext& c, Grads g) { g[0] = c.grad() * sinh(c.input(0)); }
const Op cosh_op{wide_under_autocast(of_input("cosh", cosh_gradient))};

void asinh_gradient(const GradContext& c, Grads g) {
  g[0] = c.grad() * rsqrt(square(c.input(0)) + 1.0);
}
const Op asinh_op{of_input("asinh", asinh_gradient)};

void acosh_gradient(const GradContext& c, Grads g) {
  g[0] = c.grad() * rsqrt(square(c.input(0)) - 1.0);
}
const Op acosh_op{of_input("acosh", acosh_gradient)};

void atanh_gradient(const GradContext& c, Grads g) { g[0] = c.grad() / (1.0 - square(c.input(0))); }
const Op atanh_op{of_input("atanh", atanh_gradient)};

}  // namespace

Tensor expm1(const Tensor& x) { return run_function(expm1_op, x); }
Tensor log1p(const Tensor& x) { return run_function(log1p_op, x); }
Tensor exp2(const Tensor& x) { return run_function(exp2_op, x); }
Tensor log2(const Tensor& x) { return run_function(log2_op, x); }
Tensor log10(const Tensor& x) { return run_function(log10_op, x); }
Tensor tan(const Tensor& x) { return run_function(tan_op, x); }
Tensor asin(const Tensor& x) { return run_function(asin_op, x); }
Tensor acos(const Tensor& x) { return run_function(acos_op, x); }
Tensor atan(const Tensor& x) { return run_function(atan_op, x); }
Tensor sinh(const Tensor& x) { return run_function(sinh_op, x); }
Tensor cosh(const Tensor& x) { return run_function(cosh_op, x); }
Tensor asinh(const Tensor& x) { return run_function(asinh_op, x); }
Tensor acosh(const Tensor& x) { return run_function(acosh_op, x); }
Tensor atanh(const Tensor& x) { return run_function(atanh_op, x); }

}  // namespace tenon
