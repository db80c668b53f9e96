// What recurrent networks share: layers and directions, and the loop over the sequence.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <tenon/core/dispatch/op.h>
#include <tenon/core/ops/recurrent.h>

namespace tenon {

// What one step reads: the gates that come from the input and those that come from the hidden
// state, both (batch, gates hidden); where the kind adds them, both are the sum.
struct RecurrentStep {
  Tensor input_gates, hidden_gates;
  std::vector<Tensor> states;  // before the step; the first is the hidden state
};
// Gradients of these; undefined ones are zero.
struct RecurrentStepGrads {
  Tensor input_gates, hidden_gates;
  std::vector<Tensor> states;  // of what the step reads besides the gates
};

// A network of one kind. Its state is one tensor or two, of which the first is the output.
struct RecurrentKind {
  const char* name;
  int64_t gates;  // rows of the weights for each hidden value
  size_t states;
  bool adds_gates;
  bool projects;  // whether a weight_hr may make the outputs narrower than the cells
  std::vector<Tensor> (*step)(const RecurrentStep&);  // the states after it
  // From the gradients of the states after the step, `next`, some of which may be undefined. Made
  // of differentiable operators while gradients are recorded.
  RecurrentStepGrads (*step_backward)(const std::vector<Tensor>& grads, const RecurrentStep&,
                                      const std::vector<Tensor>& next);
  // All steps as one operator and its gradient, of which only one that adds its gates has any.
  const Op *sequence = nullptr, *sequence_backward = nullptr;
};
extern const RecurrentKind lstm_kind;

// Inputs: input_gates, weight_hh, bias_hh?, h, c. Outputs: y, h and c after the last step, and of
// each step the cell after it and the sums of its gates.
extern const Op lstm_sequence_op;
// Inputs: gy?, gh?, gc?, gates, cells, c, weight_hh, h. Outputs: the gradients of input_gates,
// which are those of the hidden gates as well, of h and of c; and the hidden state before each
// step, which the gradient of weight_hh reads. It is computed again, because y is the user's, who
// may change it.
extern const Op lstm_sequence_backward_op;

// From the gradients of h and c after a step, either of which may be undefined, those of its gates
// and of the cell before.
void lstm_step_backward(const Tensor& gh, const Tensor& gc, const Tensor& gates, const Tensor& c,
                        std::span<Tensor> grads);

// Returns the steps of a sequence in the order in which they are made.
std::vector<Tensor> in_order(const Tensor& x, bool reverse);
// Returns the tensors of all steps, in the order in which these were made, joined by time.
Tensor by_time(std::vector<Tensor> steps, bool reverse);

// One direction of a layer over the gates of the whole input, (length, batch, gates hidden).
// Returns the outputs (length, batch, hidden), and replaces `states` by those after the last step.
// Defined in core/autograd/recurrent_sequence.cpp.
Tensor run_sequence(const RecurrentKind& kind, const Tensor& input_gates, const Tensor& weight_hh,
                    const Tensor& bias_hh, bool reverse, std::vector<Tensor>& states);

struct RecurrentResult {
  Tensor y;
  std::vector<Tensor> states;
};

// The same with outputs weight_hr h, which the next step reads: (length, batch, proj). Made of one
// call an operator, so each step is recorded. Defined in lstm.cpp.
Tensor run_projected(const Tensor& input_gates, const Tensor& weight_hh, const Tensor& weight_hr,
                     bool reverse, std::vector<Tensor>& states);

RecurrentResult run_layers(const RecurrentKind& kind, Tensor x, std::span<const Tensor> initial,
                           const std::vector<Tensor>& weights, const RecurrentOptions& options);

}  // namespace tenon
