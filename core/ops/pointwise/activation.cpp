// Activations (core/ops/pointwise.h) and their fused backward operators, which have gradient rules
// of their own.
#include <numbers>

#include <tenon/core/format.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/pointwise/unary.h>
#include <tenon/core/ops/rules.h>

namespace tenon {

namespace {

// Runs a backward operator on the gradient and what the forward operator saved: its input or its
// result, of the gradient's shape and dtype.
Tensor backward(const Op& op, const Tensor& gradient, const Tensor& saved) {
  return run(op, {&gradient, &saved});
}

// The distribution function of the standard normal distribution and its density.
Tensor normal_cdf(const Tensor& x) { return (erf(x * std::numbers::sqrt2 / 2.0) + 1.0) * 0.5; }
Tensor normal_pdf(const Tensor& x) {
  return exp(square(x) * -0.5) * (std::numbers::inv_sqrtpi / std::numbers::sqrt2);
}

// ---- sigmoid: s' = s (1 - s) ----

extern const Op sigmoid_backward_op;

void sigmoid_backward_gradient(const GradContext& c, Grads g) {
  const Tensor& y = c.input(1);
  if (c.needs(0)) g[0] = backward(sigmoid_backward_op, c.grad(), y);
  if (c.needs(1)) g[1] = c.grad() * c.input(0) * (1.0 - y * 2.0);
}
void decompose_sigmoid_backward(const Call& call, Outputs& out) {
  const Tensor& y = call.in(1);
  out.push_back(call.in(0) * (y * (1.0 - y)));
}
// | `sigmoid_backward tanh_backward relu_backward` | g, y -> gx | | y is the forward result |
const Op sigmoid_backward_op{{
    .name = "sigmoid_backward",
    .infer = infer_slope,
    .gradient = sigmoid_backward_gradient,
    .saves_inputs = 3,
    .pointwise = true,
    .decompose = decompose_sigmoid_backward,
}};

void sigmoid_gradient(const GradContext& c, Grads g) {
  g[0] = backward(sigmoid_backward_op, c.grad(), c.output(0));
}
void decompose_sigmoid(const Call& call, Outputs& out) {
  out.push_back(1.0 / (exp(neg(call.in(0))) + 1.0));
}
// | `tanh sigmoid relu silu gelu` | x -> y | | floats; `relu` integers too. `gelu` is the exact
//   (erf) form |
const Op sigmoid_op{{
    .name = "sigmoid",
    .infer = infer_floating,
    .gradient = sigmoid_gradient,
    .saves_outputs = 1,
    .pointwise = true,
    .promotion = Promotion::floating,
    .decompose = decompose_sigmoid,
}};

// ---- tanh: t' = 1 - t^2 ----

extern const Op tanh_backward_op;

void tanh_backward_gradient(const GradContext& c, Grads g) {
  const Tensor& y = c.input(1);
  if (c.needs(0)) g[0] = backward(tanh_backward_op, c.grad(), y);
  if (c.needs(1)) g[1] = c.grad() * c.input(0) * (y * -2.0);
}
void decompose_tanh_backward(const Call& call, Outputs& out) {
  out.push_back(call.in(0) * (1.0 - square(call.in(1))));
}
const Op tanh_backward_op{{
    .name = "tanh_backward",
    .infer = infer_slope,
    .gradient = tanh_backward_gradient,
    .saves_inputs = 3,
    .pointwise = true,
    .decompose = decompose_tanh_backward,
}};

void tanh_gradient(const GradContext& c, Grads g) {
  g[0] = backward(tanh_backward_op, c.grad(), c.output(0));
}
const Op tanh_op{{
    .name = "tanh",
    .infer = infer_floating,
    .gradient = tanh_gradient,
    .saves_outputs = 1,
    .pointwise = true,
    .promotion = Promotion::floating,
}};

// ---- relu: linear on each side of 0, so its second derivative is 0 ----

extern const Op relu_backward_op;

void relu_backward_gradient(const GradContext& c, Grads g) {
  if (c.needs(0)) g[0] = backward(relu_backward_op, c.grad(), c.input(1));
  if (c.needs(1)) g[1] = zeros_like(c.grad());
}
void decompose_relu_backward(const Call& call, Outputs& out) {
  out.push_back(where(le(call.in(1), 0.0), 0.0, call.in(0)));
}
const Op relu_backward_op{{
    .name = "relu_backward",
    .infer = infer_slope,
    .gradient = relu_backward_gradient,
    .saves_inputs = 2,
    .pointwise = true,
    .decompose = decompose_relu_backward,
}};

void relu_gradient(const GradContext& c, Grads g) {
  g[0] = backward(relu_backward_op, c.grad(), c.output(0));
}
void decompose_relu(const Call& call, Outputs& out) { out.push_back(maximum(call.in(0), 0)); }
const Op relu_op{{
    .name = "relu",
    .infer = infer_numeric,
    .gradient = relu_gradient,
    .saves_outputs = 1,
    .pointwise = true,
    .decompose = decompose_relu,
}};

// ---- gelu: x Phi(x); Phi' = phi, phi' = -x phi ----

extern const Op gelu_backward_op;

void gelu_backward_gradient(const GradContext& c, Grads g) {
  const Tensor& x = c.input(1);
  if (c.needs(0)) g[0] = backward(gelu_backward_op, c.grad(), x);
  if (c.needs(1)) g[1] = c.grad() * c.input(0) * (normal_pdf(x) * (2.0 - square(x)));
}
void decompose_gelu_backward(const Call& call, Outputs& out) {
  const Tensor& x = call.in(1);
  out.push_back(call.in(0) * (normal_cdf(x) + x * normal_pdf(x)));
}
// | `gelu_backward silu_backward` | g, x -> gx | | x is the forward input |
const Op gelu_backward_op{{
    .name = "gelu_backward",
    .infer = infer_slope,
    .gradient = gelu_backward_gradient,
    .saves_inputs = 3,
    .pointwise = true,
    .decompose = decompose_gelu_backward,
}};

void gelu_gradient(const GradContext& c, Grads g) {
  g[0] = backward(gelu_backward_op, c.grad(), c.input(0));
}
void decompose_gelu(const Call& call, Outputs& out) {
  out.push_back(call.in(0) * normal_cdf(call.in(0)));
}
const Op gelu_op{{
    .name = "gelu",
    .infer = infer_floating,
    .gradient = gelu_gradient,
    .saves_inputs = 1,
    .pointwise = true,
    .promotion = Promotion::floating,
    .decompose = decompose_gelu,
}};

// ---- silu: x s; (x s)' = s (1 + x (1 - s)) ----

extern const Op silu_backward_op;

void silu_backward_gradient(const GradContext& c, Grads g) {
  const Tensor& x = c.input(1);
  if (c.needs(0)) g[0] = backward(silu_backward_op, c.grad(), x);
  if (!c.needs(1)) return;
  Tensor s = sigmoid(x);
  g[1] = c.grad() * c.input(0) * (s * (1.0 - s) * (x * (1.0 - s * 2.0) + 2.0));
}
void decompose_silu_backward(const Call& call, Outputs& out) {
  const Tensor& x = call.in(1);
  Tensor s = sigmoid(x);
  out.push_back(call.in(0) * (s * (x * (1.0 - s) + 1.0)));
}
const Op silu_backward_op{{
    .name = "silu_backward",
    .infer = infer_slope,
    .gradient = silu_backward_gradient,
    .saves_inputs = 3,
    .pointwise = true,
    .decompose = decompose_silu_backward,
}};

void silu_gradient(const GradContext& c, Grads g) {
  g[0] = backward(silu_backward_op, c.grad(), c.input(0));
}
void decompose_silu(const Call& call, Outputs& out) {
  out.push_back(call.in(0) * sigmoid(call.in(0)));
}
const Op silu_op{{
    .name = "silu",
    .infer = infer_floating,
    .gradient = silu_gradient,
    .saves_inputs = 1,
    .pointwise = true,
    .promotion = Promotion::floating,
    .decompose = decompose_silu,
}};

Tensor activation(const Op& op, const Tensor& x) {
  require_tensor(op.name, x);
  return run(op, {&x});
}

}  // namespace

Tensor relu(const Tensor& x) { return activation(relu_op, x); }
Tensor tanh(const Tensor& x) { return activation(tanh_op, x); }
Tensor sigmoid(const Tensor& x) { return activation(sigmoid_op, x); }
Tensor silu(const Tensor& x) { return activation(silu_op, x); }

Tensor gelu(const Tensor& x, std::string_view approximate) {
  if (approximate == "none") return activation(gelu_op, x);
  if (approximate != "tanh")
    throw ValueError(fmt::format("gelu: approximate \"{}\" is not known; use \"none\" or \"tanh\"",
                                 approximate));
  return gelu_by_tanh(x);
}

Tensor Tensor::relu() const { return tenon::relu(*this); }
Tensor Tensor::sigmoid() const { return tenon::sigmoid(*this); }
Tensor Tensor::tanh() const { return tenon::tanh(*this); }

}  // namespace tenon
