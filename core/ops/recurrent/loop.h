// The loop over a sequence: of which the graph records one node
// (core/autograd/recurrent_sequence.cpp), and of which lstm_sequence is made where no plugin offers
// that (lstm_sequence.cpp).
#pragma once

#include <span>
#include <vector>

#include <tenon/core/ops/recurrent/layers.h>

namespace tenon {

struct RecurrentLoop {
  const RecurrentKind& kind;
  Tensor input_gates, weight_hh, bias_hh;
  bool reverse;
  // The steps in the order in which they are made, and the states after each.
  std::vector<RecurrentStep> steps = {};
  std::vector<std::vector<Tensor>> next = {};
  std::vector<Tensor> outputs = {};

  int64_t length() const { return input_gates.size(0); }
  int64_t time_of(int64_t step) const { return reverse ? length() - 1 - step : step; }

  // Returns the states after the last step, and adds the outputs; the steps and what comes after
  // them only if `keep` is true, for a backward pass.
  std::vector<Tensor> run(std::vector<Tensor> states, bool keep);

  struct Gradients {
    Tensor input_gates, hidden_gates;  // one tensor where the kind adds them
    std::vector<Tensor> states;        // of those before the first step
  };
  // From the steps and the gradients of the outputs, joined by time, and of the states after the
  // last step, of which some may be undefined, but not all. Needs no bias.
  Gradients backward(std::span<const Tensor> grads) const;
  // The hidden states before each step, joined by time.
  Tensor hidden_before() const;
};

}  // namespace tenon
