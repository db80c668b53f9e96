// rnn (core/ops/recurrent.h).
#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/recurrent/layers.h>
#include <tenon/core/ops/rules.h>

namespace tenon {

namespace {

template <bool kRectified>
std::vector<Tensor> step_rnn(const RecurrentStep& step) {
  return {kRectified ? relu(step.input_gates) : tanh(step.input_gates)};
}
template <bool kRectified>
RecurrentStepGrads step_rnn_backward(const std::vector<Tensor>& grads, const RecurrentStep&,
                                     const std::vector<Tensor>& next) {
  const Tensor g =
      kRectified ? where(le(next[0], 0.0), 0.0, grads[0]) : grads[0] * (1.0 - square(next[0]));
  return {g, g, {Tensor()}};
}
constexpr RecurrentKind kTanh =
                            {"rnn", 1, 1, true, false, step_rnn<false>, step_rnn_backward<false>},
                        kRelu = {"rnn", 1, 1, true, false, step_rnn<true>, step_rnn_backward<true>};

}  // namespace

std::pair<Tensor, Tensor> rnn(const Tensor& x, const Tensor& h0, const std::vector<Tensor>& weights,
                              std::string_view nonlinearity, const RecurrentOptions& options) try {
  if (const Autocasting cast{"rnn", {&x, &h0}})
    return rnn(cast(x), cast(h0), cast(weights), nonlinearity, options);
  if (nonlinearity != "tanh" && nonlinearity != "relu")
    throw ValueError(
        fmt::format("rnn: nonlinearity is \"tanh\" or \"relu\", found \"{}\"", nonlinearity));
  const RecurrentKind& kind = nonlinearity == "relu" ? kRelu : kTanh;
  const Tensor initial[] = {h0};
  auto result = run_layers(kind, x, initial, weights, options);
  return {result.y, result.states[0]};
} catch (const Error&) {
  rethrow_in("rnn");
}

}  // namespace tenon
