// logsumexp (core/ops/reduction.h).
#include <limits>

#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/reduction/reduce.h>
#include <tenon/core/ops/rules.h>

namespace tenon {

namespace {

// dy/dx_i = exp(x_i - y), PyTorch's formula: NaN where everything is -inf, and at an element that
// is inf.
void logsumexp_gradient(const GradContext& c, Grads g) {
  const Shape dims = c.attrs.get_list("dims");
  const Shape& shape = c.input_shape(0);
  g[0] = unreduce(c.grad(), dims, shape) * exp(c.input(0) - unreduce(c.output(0), dims, shape));
}

// The largest element is taken off before exp, so that it cannot overflow. An infinite one stays,
// since inf - inf is NaN.
void decompose_logsumexp(const Call& call, Outputs& out) {
  const Tensor& x = call.in(0);
  const Shape dims = call.attrs.get_list("dims");
  if (shape_of(x).numel() == 0) {
    out.push_back(log(sum(exp(x), dims)));
    return;
  }
  const Tensor largest = amax(x, dims, true);
  const Tensor shift =
      where(eq(abs(largest), std::numeric_limits<double>::infinity()), 0.0, largest);
  const Tensor result = log(sum(exp(x - shift), dims, true)) + shift;
  out.push_back(result.reshape(reduced_shape(shape_of(x), dims)));
}

// | `logsumexp` | x -> y | `dims` | floats; log(sum(exp(x))) without overflow. -inf where there are
//   no elements, or -inf alone; inf where one is among them. Optional: where it is not offered the
//   core computes it by `amax`, `exp`, `sum` and `log` |
const Op logsumexp_op{{
    .name = "logsumexp",
    .infer = infer_reduced_floating,
    .gradient = logsumexp_gradient,
    .saves_inputs = 1,
    .saves_outputs = 1,
    .promotion = Promotion::floating,
    .autocast = AutocastRule::f32,
    .decompose = decompose_logsumexp,
}};

}  // namespace

Tensor logsumexp(const Tensor& x, const Shape& dims, bool keepdim) {
  return reduce(logsumexp_op, x, dims, keepdim);
}

}  // namespace tenon
