#include <utility>

#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/recurrent/loop.h>

namespace tenon {

namespace {

Tensor sum_of(const Tensor& a, const Tensor& b) {
  return !a.defined() ? b : !b.defined() ? a : a + b;
}

}  // namespace

std::vector<Tensor> RecurrentLoop::run(std::vector<Tensor> states, bool keep) {
  for (int64_t i = 0; i < length(); ++i) {
    RecurrentStep step{input_gates.select(0, time_of(i)), linear(states[0], weight_hh, bias_hh),
                       std::move(states)};
    if (kind.adds_gates)
      step.input_gates = step.hidden_gates = step.input_gates + step.hidden_gates;
    states = kind.step(step);
    outputs.push_back(states[0]);
    if (!keep) continue;
    steps.push_back(std::move(step));
    next.push_back(states);
  }
  return states;
}

RecurrentLoop::Gradients RecurrentLoop::backward(std::span<const Tensor> grads) const {
  std::vector<Tensor> states(grads.begin() + 1, grads.end()), input(steps.size()),
      hidden(steps.size());
  for (size_t i = steps.size(); i-- > 0;) {
    if (grads[0].defined())
      states[0] = sum_of(states[0], grads[0].select(0, time_of(static_cast<int64_t>(i))));
    auto g = kind.step_backward(states, steps[i], next[i]);
    states = std::move(g.states);
    states[0] = sum_of(states[0], matmul(g.hidden_gates, weight_hh));
    input[i] = g.input_gates;
    hidden[i] = g.hidden_gates;
  }
  const Tensor of_input = by_time(std::move(input), reverse);
  return {of_input, kind.adds_gates ? of_input : by_time(std::move(hidden), reverse),
          std::move(states)};
}

Tensor RecurrentLoop::hidden_before() const {
  std::vector<Tensor> before;
  for (auto& step : steps) before.push_back(step.states[0]);
  return by_time(std::move(before), reverse);
}

}  // namespace tenon
