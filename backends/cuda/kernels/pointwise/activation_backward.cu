// Gradients of the activations of activation.cu, each in one pass: (g, y) -> gx with the forward
// result y, or (g, x) -> gx with its input x.
#include <cmath>

#include "kernels/pointwise/pointwise.h"

namespace tenon::cuda {
namespace {

// d/dx x Phi(x) = Phi(x) + x phi(x)
struct GeluBackward {
  template <class T>
  __device__ T operator()(T g, T x) const {
    T cdf = T(0.5) * (T(1) + std::erf(x * T(0.70710678118654752440)));
    T pdf = std::exp(T(-0.5) * x * x) * T(0.39894228040143267794);
    return g * (cdf + x * pdf);
  }
};
struct SiluBackward {
  template <class T>
  __device__ T operator()(T g, T x) const {
    T s = T(1) / (T(1) + std::exp(-x));
    return g * s * (T(1) + x * (T(1) - s));
  }
};

template <class Op>
tn_plan* make(tn_device*, const Request& request) {
  static constexpr auto starts =
      float_starts([]<class T>(Type<T>) { return start_binary<Op, T, T>; });
  return make_binary_plan(request, starts.pick(request.input(0).dtype));
}

const sdk::Kernel sigmoid({"sigmoid_backward"}, make<formulas::SigmoidBackward>);
const sdk::Kernel tanh({"tanh_backward"}, make<formulas::TanhBackward>);
const sdk::Kernel relu({"relu_backward"}, make<formulas::ReluBackward>);
const sdk::Kernel gelu({"gelu_backward"}, make<GeluBackward>);
const sdk::Kernel silu({"silu_backward"}, make<SiluBackward>);

}  // namespace
}  // namespace tenon::cuda
