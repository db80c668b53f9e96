// softmax and log_softmax (core/ops/normalization.h).
#include <tenon/core/ops/normalization.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>

namespace tenon {

namespace {

// The gradients of x, composed of other operators so that they have gradients themselves. The fused
// backward operators have none.
Tensor composed_softmax_backward(const Tensor& g, const Tensor& y, int64_t dim) {
  return y * (g - sum(g * y, {dim}, true));
}
Tensor composed_log_softmax_backward(const Tensor& g, const Tensor& y, int64_t dim) {
  return g - exp(y) * sum(g, {dim}, true);
}

// ---- softmax ----

void decompose_softmax_backward(const Call& call, Outputs& out) {
  out.push_back(composed_softmax_backward(call.in(0), call.in(1), call.attrs.get_int("dim")));
}
// | `softmax_backward log_softmax_backward` | g, y -> gx | `dim` | |
const Op softmax_backward_op{{
    .name = "softmax_backward",
    .infer = infer_floating,
    .decompose = decompose_softmax_backward,
}};

void softmax_gradient(const GradContext& c, Grads g) {
  g[0] = grad_enabled() ? composed_softmax_backward(c.grad(), c.output(0), c.attrs.get_int("dim"))
                        : run(softmax_backward_op, {&c.grad(), &c.output(0)}, c.attrs);
}
void decompose_softmax(const Call& call, Outputs& out) {
  Shape dims = {call.attrs.get_int("dim")};
  Tensor e = exp(call.in(0) - amax(call.in(0), dims, true));
  out.push_back(e / sum(e, dims, true));
}
// | `softmax log_softmax` | x -> y | `dim` | |
const Op softmax_op{{
    .name = "softmax",
    .infer = infer_floating,
    .gradient = softmax_gradient,
    .saves_outputs = 1,
    .promotion = Promotion::floating,
    .autocast = AutocastRule::f32,
    .decompose = decompose_softmax,
}};

// ---- log_softmax ----

void decompose_log_softmax_backward(const Call& call, Outputs& out) {
  out.push_back(composed_log_softmax_backward(call.in(0), call.in(1), call.attrs.get_int("dim")));
}
const Op log_softmax_backward_op{{
    .name = "log_softmax_backward",
    .infer = infer_floating,
    .decompose = decompose_log_softmax_backward,
}};

void log_softmax_gradient(const GradContext& c, Grads g) {
  g[0] = grad_enabled()
             ? composed_log_softmax_backward(c.grad(), c.output(0), c.attrs.get_int("dim"))
             : run(log_softmax_backward_op, {&c.grad(), &c.output(0)}, c.attrs);
}
void decompose_log_softmax(const Call& call, Outputs& out) {
  Shape dims = {call.attrs.get_int("dim")};
  Tensor shifted = call.in(0) - amax(call.in(0), dims, true);
  out.push_back(shifted - log(sum(exp(shifted), dims, true)));
}
const Op log_softmax_op{{
    .name = "log_softmax",
    .infer = infer_floating,
    .gradient = log_softmax_gradient,
    .saves_outputs = 1,
    .promotion = Promotion::floating,
    .autocast = AutocastRule::f32,
    .decompose = decompose_log_softmax,
}};

Tensor normalize(const Op& op, const Tensor& x, int64_t dim) {
  require_tensor(op.name, x);
  if (shape_of(x).empty()) {
    wrap_dim(dim, 1, op.name);
    return normalize(op, x.reshape({1}), 0).reshape({});
  }
  return run(op, {&x},
             Attrs().set("dim", wrap_dim(dim, static_cast<int64_t>(shape_of(x).size()), op.name)));
}

}  // namespace

Tensor softmax(const Tensor& x, int64_t dim) { return normalize(softmax_op, x, dim); }
Tensor log_softmax(const Tensor& x, int64_t dim) { return normalize(log_softmax_op, x, dim); }
Tensor Tensor::softmax(int64_t dim) const { return tenon::softmax(*this, dim); }

}  // namespace tenon
