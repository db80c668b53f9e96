// dropout (core/ops/random.h).
#include <tenon/core/base/number_text.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/random.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/random.h>

namespace tenon {

namespace {

Tensor backward(const Tensor& gradient, const Tensor& mask, double p);

void dropout_backward_gradient(const GradContext& c, Grads g) {
  if (c.needs(0)) g[0] = backward(c.grad(), c.input(1), c.scalars[0].value.f);
}
void decompose_dropout_backward(const Call& call, Outputs& out) {
  const double scale = 1.0 / (1.0 - call.scalars[0].value.f);
  out.push_back(where(call.in(1), call.in(0) * scale, 0.0));
}
void infer_dropout_backward(Infer& infer) {
  infer_floating(infer);
  infer.require_dtype(dtype_of(infer.in(1)) == DType::boolean, 1, "bool", DType::boolean);
  if (!(shape_of(infer.in(1)) == shape_of(infer.in(0))))
    infer.shape_error(fmt::format("the mask has shape {}, and the gradient {}",
                                  shape_of(infer.in(1)), shape_of(infer.in(0))));
}
// | `dropout_backward` | g, mask -> gx | ; p | g * mask / (1-p) |
const Op dropout_backward_op{{
    .name = "dropout_backward",
    .infer = infer_dropout_backward,
    .gradient = dropout_backward_gradient,
    .saves_inputs = 2,
    .by_element = true,
    .decompose = decompose_dropout_backward,
    .scalars = 1,
}};

Tensor backward(const Tensor& gradient, const Tensor& mask, double p) {
  if (p == 1) return zeros_like(gradient);  // 1 / (1 - p) is infinite
  return run(dropout_backward_op, {&gradient, &mask}, {}, {Scalar(p)});
}

void infer_dropout(Infer& infer) {
  infer_floating(infer);
  infer.output(DType::boolean, shape_of(infer.in(0)));
}
void dropout_gradient(const GradContext& c, Grads g) {
  g[0] = backward(c.grad(), c.output(1), c.scalars[2].value.f);
}
// | `dropout` | x -> y, mask(bool) | ; seed:i, offset:i, p | mask is 1 with probability 1-p; y = x
//   * mask / (1-p); p = 1 gives zeros |
const Op dropout_op{{
    .name = "dropout",
    .infer = infer_dropout,
    .gradient = dropout_gradient,
    .saves_outputs = 2,
    .by_element = true,
    .scalars = 3,
    .draws = true,
}};

}  // namespace

Tensor dropout(const Tensor& x, double p, bool training) {
  require_tensor("dropout", x);
  if (!(p >= 0 && p <= 1))
    throw ValueError(fmt::format("dropout: p must lie in [0, 1], found {}", number_text(p)));
  if (!training || p == 0) return x;
  RandomState state = next_random();
  Scalar scalars[] = {Scalar::integer(static_cast<int64_t>(state.seed)),
                      Scalar::integer(static_cast<int64_t>(state.offset)), p};
  const Tensor* inputs[] = {&x};
  return run_all({dropout_op, inputs, no_attrs, scalars})[0];
}

}  // namespace tenon
