// What recurrent networks share: layers and directions, and the loop over the sequence.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include <tenon/core/ops/recurrent.h>

namespace tenon {

// A network of one kind. Its state is one tensor or two.
struct RecurrentKind {
  const char* name;
  int64_t gates;  // rows of the weights for each hidden value
  size_t states;
  // Makes the step from the gates that come from the input, (batch, gates hidden) with both biases
  // or the first, to the next states, of which the first is the output.
  std::function<std::vector<Tensor>(const Tensor& input_gates, const std::vector<Tensor>& states,
                                    const Tensor& weight_hh, const Tensor& bias_hh)>
      step;
};

struct RecurrentResult {
  Tensor y;
  std::vector<Tensor> states;
};

RecurrentResult run_layers(const RecurrentKind& kind, Tensor x, std::span<const Tensor> initial,
                           const std::vector<Tensor>& weights, const RecurrentOptions& options);

}  // namespace tenon
