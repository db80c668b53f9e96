#include "swish2.h"

#include <tenon/core/dispatch/custom_op.h>

namespace mylib {

using namespace tenon;

namespace {

// Runs once for each plan: what comes out, and what is refused.
std::vector<custom::TensorMeta> infer_swish2(const custom::InferContext& call) {
  const custom::TensorMeta& x = call.input(0);
  if (!is_floating_point(x.dtype)) call.dtype_error("x must be floating; convert it with .to(f32)");
  return {x};
}

// For devices without a kernel.
std::vector<Tensor> decompose_swish2(const custom::CallContext& call) {
  const Tensor& x = call.input(0);
  return {x * sigmoid(x * call.attributes.get_float("beta"))};
}

// With s = sigmoid(beta x): s + beta x s (1 - s).
std::vector<Tensor> swish2_gradient(const custom::GradientContext& call) {
  const double beta = call.attributes.get_float("beta");
  const Tensor &x = call.inputs[0], s = sigmoid(x * beta);
  return {call.grads[0] * (s + x * beta * s * (1 - s))};
}

const custom::Op swish2_op({.name = "mylib::swish2",
                            .infer = infer_swish2,
                            .decompose = decompose_swish2,
                            .gradient = swish2_gradient,
                            .saves_inputs = {0},
                            .pointwise = true});

}  // namespace

Tensor swish2(const Tensor& x, double beta) {
  return swish2_op({x}, custom::Attributes().set("beta", beta));
}

}  // namespace mylib
