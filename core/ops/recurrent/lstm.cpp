// lstm and lstm_step (core/ops/recurrent.h).
#include <algorithm>

#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/recurrent/layers.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

void infer_lstm_step(Infer& infer) {
  const TensorDesc &gates = infer.in(0), &c = infer.in(1);
  infer.require_dtype(is_floating_point(dtype_of(c)), 1, "a floating type");
  infer.require_dtype(dtype_of(gates) == dtype_of(c), 0, "of the cell's type", dtype_of(c));
  const Shape& s = shape_of(c);
  if (s.size() != 2 || !(shape_of(gates) == Shape{s[0], 4 * s[1]}))
    infer.shape_error(
        fmt::format("needs gates (batch, 4 hidden) and a cell (batch, hidden); found {} and {}",
                    shape_of(gates), s));
  infer.output(dtype_of(c), s);
  infer.output(dtype_of(c), s);
}

struct LstmGates {
  Tensor i, f, g, o;
};
LstmGates lstm_gates_of(const Tensor& gates) {
  const int64_t n = shape_of(gates)[1] / 4;
  return {sigmoid(gates.narrow(1, 0, n)), sigmoid(gates.narrow(1, n, n)),
          tanh(gates.narrow(1, 2 * n, n)), sigmoid(gates.narrow(1, 3 * n, n))};
}

void decompose_lstm_step(const Call& call, Outputs& out) {
  const auto [i, f, g, o] = lstm_gates_of(call.in(0));
  const Tensor c = f * call.in(1) + i * g;
  out = {o * tanh(c), c};
}

// The gradients of the gates and of the cell before; gh and gc may be undefined.
void lstm_composed_backward(const Tensor& gh, const Tensor& gc, const Tensor& gates,
                            const Tensor& c, Grads out) {
  const auto [i, f, g, o] = lstm_gates_of(gates);
  const Tensor t = tanh(f * c + i * g);
  Tensor d = gh.defined() ? gh * o * (1.0 - square(t)) : gc;
  if (gh.defined() && gc.defined()) d = d + gc;
  const Tensor go = gh.defined() ? gh * t * o * (1.0 - o) : o * 0.0;
  out[0] = cat({d * g * i * (1.0 - i), d * c * f * (1.0 - f), d * i * (1.0 - square(g)), go}, 1);
  out[1] = d * f;
}

void infer_lstm_step_backward(Infer& infer) {
  infer.output(dtype_of(infer.in(2)), shape_of(infer.in(2)));
  infer.output(dtype_of(infer.in(3)), shape_of(infer.in(3)));
}

void decompose_lstm_step_backward(const Call& call, Outputs& out) {
  out.resize(2);
  lstm_composed_backward(call.optional(0), call.optional(1), call.in(2), call.in(3), out);
}

// | `lstm_step_backward` | gh?, gc'?, gates, c -> ggates, gc | | an absent gradient is 0 |
const Op lstm_step_backward_op{{
    .name = "lstm_step_backward",
    .infer = infer_lstm_step_backward,
    .decompose = decompose_lstm_step_backward,
}};

}  // namespace

void lstm_step_backward(const Tensor& gh, const Tensor& gc, const Tensor& gates, const Tensor& c,
                        Grads g) {
  if (grad_enabled()) return lstm_composed_backward(gh, gc, gates, c, g);
  const Tensor* inputs[] = {gh.defined() ? &gh : nullptr, gc.defined() ? &gc : nullptr, &gates, &c};
  auto grads = run_all({lstm_step_backward_op, inputs});
  g[0] = grads[0], g[1] = grads[1];
}

namespace {

void lstm_step_gradient(const GradContext& c, Grads g) {
  lstm_step_backward(c.grad(0), c.grad(1), c.input(0), c.input(1), g);
}

// | `lstm_step` | gates(n,4h), c(n,h) -> h(n,h), c'(n,h) | | gates i, f, g, o: c' = sigmoid(f) c +
//   sigmoid(i) tanh(g), h = sigmoid(o) tanh(c') |
const Op lstm_step_op{{
    .name = "lstm_step",
    .inputs = "gates c",
    .infer = infer_lstm_step,
    .gradient = lstm_step_gradient,
    .saves_inputs = 3,
    .differentiable = 3,
    .autocast = AutocastRule::lower,
    .decompose = decompose_lstm_step,
}};

std::vector<Tensor> step_lstm(const RecurrentStep& step) {
  auto [h, c] = lstm_step(step.input_gates, step.states[1]);
  return {h, c};
}
RecurrentStepGrads step_lstm_backward(const std::vector<Tensor>& grads, const RecurrentStep& step,
                                      const std::vector<Tensor>&) {
  std::vector<Tensor> g(2);
  lstm_step_backward(grads[0], grads[1], step.input_gates, step.states[1], g);
  return {g[0], g[0], {Tensor(), g[1]}};
}
}  // namespace

constinit const RecurrentKind lstm_kind = {"lstm",
                                           4,
                                           2,
                                           true,
                                           true,
                                           step_lstm,
                                           step_lstm_backward,
                                           &lstm_sequence_op,
                                           &lstm_sequence_backward_op};

Tensor run_projected(const Tensor& input_gates, const Tensor& weight_hh, const Tensor& weight_hr,
                     bool reverse, std::vector<Tensor>& states) {
  std::vector<Tensor> outputs;
  for (auto& input : in_order(input_gates, reverse)) {
    auto [h, c] = lstm_step(input + linear(states[0], weight_hh), states[1]);
    states = {linear(h, weight_hr), c};
    outputs.push_back(states[0]);
  }
  return by_time(std::move(outputs), reverse);
}

std::pair<Tensor, Tensor> lstm_step(const Tensor& gates, const Tensor& c) {
  if (const Autocasting cast{"lstm_step", {&gates, &c}}) return lstm_step(cast(gates), cast(c));
  require_tensor("lstm_step", gates, "gates");
  require_tensor("lstm_step", c, "c");
  const Tensor* inputs[] = {&gates, &c};
  auto out = run_all({lstm_step_op, inputs});
  return {out[0], out[1]};
}

std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& x, const Tensor& h0, const Tensor& c0,
                                        const std::vector<Tensor>& weights,
                                        const RecurrentOptions& options) try {
  if (const Autocasting cast{"lstm", {&x, &h0, &c0}})
    return lstm(cast(x), cast(h0), cast(c0), cast(weights), options);
  const Tensor initial[] = {h0, c0};
  auto result = run_layers(lstm_kind, x, initial, weights, options);
  return {result.y, result.states[0], result.states[1]};
} catch (const Error&) {
  rethrow_in("lstm");
}

}  // namespace tenon
