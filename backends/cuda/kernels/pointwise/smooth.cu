// Smooth activations and their gradients, each in one pass: x -> y, and (g, x) -> gx.
#include <tenon/plugins/sdk/activations.h>

#include "kernels/pointwise/elements.h"
#include "kernels/pointwise/pointwise.h"

namespace tenon::cuda {
namespace {

template <template <class> class F, class T>
void start_value(const Loop<2>& loop, const tn_run& run) {
  using Op = elements::ValueOf<F<Computed<T>>>;
  loop.run<Op, T>(run.stream, Op{F<Computed<T>>::from(run.scalars)}, run.outputs[0],
                  operand<T>(run.inputs[0]));
}
template <template <class> class F, class T>
void start_slope(const Loop<3>& loop, const tn_run& run) {
  using Op = elements::SlopeOf<F<Computed<T>>>;
  loop.run<Op, T>(run.stream, Op{F<Computed<T>>::from(run.scalars)}, run.outputs[0],
                  operand<T>(run.inputs[0]), operand<T>(run.inputs[1]));
}

using SlopeStart = void (*)(const Loop<3>& loop, const tn_run& run);

struct ActivationEntry {
  const char *op, *backward;
  size_t scalars;
  ByDtype<UnaryStart> values;
  ByDtype<SlopeStart> slopes;
};
template <template <class> class F>
constexpr ActivationEntry activation(const char* op, const char* backward, size_t scalars) {
  return {op, backward, scalars,
          float_starts([]<class T>(Type<T>) -> UnaryStart { return start_value<F, T>; }),
          float_starts([]<class T>(Type<T>) -> SlopeStart { return start_slope<F, T>; })};
}
constexpr ActivationEntry kSmooth[] = {
    activation<formulas::Elu>("elu", "elu_backward", 3),
    activation<formulas::LeakyRelu>("leaky_relu", "leaky_relu_backward", 1),
    activation<formulas::Softplus>("softplus", "softplus_backward", 2),
    activation<formulas::LogSigmoid>("logsigmoid", "logsigmoid_backward", 0),
    activation<formulas::GeluTanh>("gelu_tanh", "gelu_tanh_backward", 0),
    activation<formulas::Mish>("mish", "mish_backward", 0),
    activation<formulas::HardSigmoid>("hardsigmoid", "hardsigmoid_backward", 0),
    activation<formulas::HardSwish>("hardswish", "hardswish_backward", 0),
};

tn_plan* make_value(tn_device*, const Request& request) {
  auto& entry = sdk::entry_of(kSmooth, request.op());
  sdk::require_scalars(request, entry.scalars);
  return make_unary_plan(request, entry.values.pick(request.input(0).dtype));
}

tn_plan* make_slope(tn_device*, const Request& request) {
  auto &g = request.input(0), &x = request.input(1);
  for (auto& entry : kSmooth) {
    if (request.op() != entry.backward) continue;
    sdk::require_scalars(request, entry.scalars);
    if (g.dtype != x.dtype) refuse_dtype(g.dtype);
    const SlopeStart start = entry.slopes.pick(x.dtype);
    if (sdk::numel(request.output(0)) == 0) return empty_plan();
    return make_plan(
        [loop = loop_over(request, &g, &x), start](const tn_run& run) { start(loop, run); });
  }
  sdk::unsupported("no entry for operator \"" + std::string(request.op()) + "\"");
}

const sdk::Kernel values({"elu", "leaky_relu", "softplus", "logsigmoid", "gelu_tanh", "mish",
                          "hardsigmoid", "hardswish"},
                         make_value);
const sdk::Kernel slopes({"elu_backward", "leaky_relu_backward", "softplus_backward",
                          "logsigmoid_backward", "gelu_tanh_backward", "mish_backward",
                          "hardsigmoid_backward", "hardswish_backward"},
                         make_slope);

}  // namespace
}  // namespace tenon::cuda
