// Gradients of the activations of activation.cu, each in one pass: (g, y) -> gx with the forward
// result y, or (g, x) -> gx with its input x.
#include "kernels/pointwise/elements.h"
#include "kernels/pointwise/pointwise.h"

namespace tenon::cuda {
namespace {

template <class Op>
tn_plan* make(tn_device*, const Request& request) {
  static constexpr auto starts =
      float_starts([]<class T>(Type<T>) { return start_binary<Op, T, T>; });
  return make_binary_plan(request, starts.pick(request.input(0).dtype));
}

const sdk::Kernel sigmoid({"sigmoid_backward"}, make<formulas::SigmoidBackward>);
const sdk::Kernel tanh({"tanh_backward"}, make<formulas::TanhBackward>);
const sdk::Kernel relu({"relu_backward"}, make<formulas::ReluBackward>);
const sdk::Kernel gelu({"gelu_backward"}, make<elements::GeluBackward>);
const sdk::Kernel silu({"silu_backward"}, make<elements::SiluBackward>);

}  // namespace
}  // namespace tenon::cuda
