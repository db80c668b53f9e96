// rnn (core/ops/recurrent.h).
#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/recurrent/layers.h>
#include <tenon/core/ops/rules.h>

namespace tenon {

std::pair<Tensor, Tensor> rnn(const Tensor& x, const Tensor& h0, const std::vector<Tensor>& weights,
                              std::string_view nonlinearity, const RecurrentOptions& options) {
  if (const Autocasting cast{"rnn", {&x, &h0}})
    return rnn(cast(x), cast(h0), cast(weights), nonlinearity, options);
  if (nonlinearity != "tanh" && nonlinearity != "relu")
    throw ValueError(
        fmt::format("rnn: nonlinearity is \"tanh\" or \"relu\", found \"{}\"", nonlinearity));
  const bool rectified = nonlinearity == "relu";
  const RecurrentKind kind = {
      "rnn", 1, 1,
      [rectified](const Tensor& input_gates, const std::vector<Tensor>& states,
                  const Tensor& weight_hh, const Tensor& bias_hh) -> std::vector<Tensor> {
        const Tensor sum = input_gates + linear(states[0], weight_hh, bias_hh);
        return {rectified ? relu(sum) : tanh(sum)};
      }};
  const Tensor initial[] = {h0};
  auto result = run_layers(kind, x, initial, weights, options);
  return {result.y, result.states[0]};
}

}  // namespace tenon
