// Functions of one tensor (core/ops/pointwise.h) except the activations.
#include <cmath>
#include <numbers>

#include <tenon/core/ops/arithmetic.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/rules.h>

namespace tenon {

namespace {

// The gradient of a step function is 0 wherever there is one.
void zero_gradient(const GradContext& c, Grads g) { g[0] = zeros_like(c.grad()); }

void neg_gradient(const GradContext& c, Grads g) { g[0] = neg(c.grad()); }
// | `neg abs sign` | x -> y | | floats, i64, i32 |
const Op neg_op{{
    .name = "neg",
    .infer = infer_numeric,
    .gradient = neg_gradient,
    .pointwise = true,
}};

void abs_gradient(const GradContext& c, Grads g) { g[0] = c.grad() * sign(c.input(0)); }
const Op abs_op{{
    .name = "abs",
    .infer = infer_numeric,
    .gradient = abs_gradient,
    .saves_inputs = 1,
    .pointwise = true,
}};

const Op sign_op{{
    .name = "sign",
    .infer = infer_numeric,
    .gradient = zero_gradient,
    .pointwise = true,
}};
// | `floor ceil round trunc` | x -> y | | floats; `round` to even |
const Op floor_op{{
    .name = "floor",
    .infer = infer_floating,
    .gradient = zero_gradient,
    .pointwise = true,
}};
const Op ceil_op{{
    .name = "ceil",
    .infer = infer_floating,
    .gradient = zero_gradient,
    .pointwise = true,
}};
const Op trunc_op{{
    .name = "trunc",
    .infer = infer_floating,
    .gradient = zero_gradient,
    .pointwise = true,
}};
const Op round_op{{
    .name = "round",
    .infer = infer_floating,
    .gradient = zero_gradient,
    .pointwise = true,
}};

void square_gradient(const GradContext& c, Grads g) { g[0] = c.grad() * (c.input(0) * 2.0); }
void decompose_square(const Call& call, Outputs& out) {
  out.push_back(mul(call.in(0), call.in(0)));
}
// | `square reciprocal exp log sqrt rsqrt sin cos erf` | x -> y | | floats; `square` integers too |
const Op square_op{{
    .name = "square",
    .infer = infer_numeric,
    .gradient = square_gradient,
    .saves_inputs = 1,
    .pointwise = true,
    .decompose = decompose_square,
}};

void reciprocal_gradient(const GradContext& c, Grads g) {
  g[0] = neg(c.grad() * square(c.output(0)));
}
void decompose_reciprocal(const Call& call, Outputs& out) { out.push_back(1.0 / call.in(0)); }
const Op reciprocal_op{{
    .name = "reciprocal",
    .infer = infer_floating,
    .gradient = reciprocal_gradient,
    .saves_outputs = 1,
    .pointwise = true,
    .promotion = Promotion::floating,
    .autocast = AutocastRule::f32,
    .decompose = decompose_reciprocal,
}};

void exp_gradient(const GradContext& c, Grads g) { g[0] = c.grad() * c.output(0); }
const Op exp_op{{
    .name = "exp",
    .infer = infer_floating,
    .gradient = exp_gradient,
    .saves_outputs = 1,
    .pointwise = true,
    .promotion = Promotion::floating,
    .autocast = AutocastRule::f32,
}};

void log_gradient(const GradContext& c, Grads g) { g[0] = c.grad() / c.input(0); }
const Op log_op{{
    .name = "log",
    .infer = infer_floating,
    .gradient = log_gradient,
    .saves_inputs = 1,
    .pointwise = true,
    .promotion = Promotion::floating,
    .autocast = AutocastRule::f32,
}};

void sqrt_gradient(const GradContext& c, Grads g) { g[0] = c.grad() / (c.output(0) * 2.0); }
const Op sqrt_op{{
    .name = "sqrt",
    .infer = infer_floating,
    .gradient = sqrt_gradient,
    .saves_outputs = 1,
    .pointwise = true,
    .promotion = Promotion::floating,
}};

void rsqrt_gradient(const GradContext& c, Grads g) {
  g[0] = c.grad() * (pow(c.output(0), 3.0) * -0.5);
}
void decompose_rsqrt(const Call& call, Outputs& out) { out.push_back(1.0 / sqrt(call.in(0))); }
const Op rsqrt_op{{
    .name = "rsqrt",
    .infer = infer_floating,
    .gradient = rsqrt_gradient,
    .saves_outputs = 1,
    .pointwise = true,
    .promotion = Promotion::floating,
    .autocast = AutocastRule::f32,
    .decompose = decompose_rsqrt,
}};

void sin_gradient(const GradContext& c, Grads g) { g[0] = c.grad() * cos(c.input(0)); }
const Op sin_op{{
    .name = "sin",
    .infer = infer_floating,
    .gradient = sin_gradient,
    .saves_inputs = 1,
    .pointwise = true,
    .promotion = Promotion::floating,
}};

void cos_gradient(const GradContext& c, Grads g) { g[0] = neg(c.grad() * sin(c.input(0))); }
const Op cos_op{{
    .name = "cos",
    .infer = infer_floating,
    .gradient = cos_gradient,
    .saves_inputs = 1,
    .pointwise = true,
    .promotion = Promotion::floating,
}};

void erf_gradient(const GradContext& c, Grads g) {
  g[0] = c.grad() * (exp(neg(square(c.input(0)))) * (2.0 * std::numbers::inv_sqrtpi));
}
const Op erf_op{{
    .name = "erf",
    .infer = infer_floating,
    .gradient = erf_gradient,
    .saves_inputs = 1,
    .pointwise = true,
    .promotion = Promotion::floating,
}};

Tensor unary(const Op& op, const Tensor& x) {
  require_tensor(op.name, x);
  return run(op, {&x});
}

Tensor rounding(const Op& op, const Tensor& x) {
  require_tensor(op.name, x);
  return is_integer(dtype_of(x)) ? x : run(op, {&x});
}

}  // namespace

Tensor neg(const Tensor& x) { return unary(neg_op, x); }
Tensor abs(const Tensor& x) { return unary(abs_op, x); }
Tensor sign(const Tensor& x) { return unary(sign_op, x); }
Tensor square(const Tensor& x) { return unary(square_op, x); }
Tensor reciprocal(const Tensor& x) { return unary(reciprocal_op, x); }
Tensor exp(const Tensor& x) { return unary(exp_op, x); }
Tensor log(const Tensor& x) { return unary(log_op, x); }
Tensor sqrt(const Tensor& x) { return unary(sqrt_op, x); }
Tensor rsqrt(const Tensor& x) { return unary(rsqrt_op, x); }
Tensor sin(const Tensor& x) { return unary(sin_op, x); }
Tensor cos(const Tensor& x) { return unary(cos_op, x); }
Tensor erf(const Tensor& x) { return unary(erf_op, x); }
Tensor floor(const Tensor& x) { return rounding(floor_op, x); }
Tensor ceil(const Tensor& x) { return rounding(ceil_op, x); }
Tensor round(const Tensor& x) { return rounding(round_op, x); }
Tensor trunc(const Tensor& x) { return rounding(trunc_op, x); }
Tensor frac(const Tensor& x) try { return sub(x, trunc(x)); } catch (const Error&) {
  rethrow_in("frac");
}

Tensor Tensor::exp() const { return tenon::exp(*this); }
Tensor Tensor::log() const { return tenon::log(*this); }
Tensor Tensor::sqrt() const { return tenon::sqrt(*this); }
Tensor Tensor::square() const { return tenon::square(*this); }
Tensor Tensor::abs() const { return tenon::abs(*this); }

}  // namespace tenon
