// lstm_sequence, all steps of a layer as one operator (layers.h). It is not recorded: the function
// that runs it is one node of the graph (core/autograd/recurrent_sequence.cpp). Where no plugin
// offers it, it is the loop over single steps.
#include <tenon/core/format.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/recurrent/loop.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

void infer_lstm_sequence(Infer& infer) {
  const TensorDesc &gates = infer.in(0), &c = infer.in(4);
  const DType t = dtype_of(gates);
  const Shape &g = shape_of(gates), &s = shape_of(c);
  if (g.size() != 3 || !(s == Shape{g[1], g[2] / 4}) || !(shape_of(infer.in(3)) == s))
    infer.shape_error(fmt::format(
        "needs gates (length, batch, 4 hidden) and states (batch, hidden); found {}, {} and {}", g,
        shape_of(infer.in(3)), s));
  const Shape steps{g[0], s[0], s[1]};
  infer.output(t, steps);
  infer.output(t, s);
  infer.output(t, s);
  infer.output(t, steps);
  infer.output(t, g);
}

void decompose_lstm_sequence(const Call& call, Outputs& out) {
  RecurrentLoop loop{lstm_kind, call.in(0), call.in(1), call.optional(2),
                     call.attrs.get_bool("reverse")};
  const bool keep = (call.wanted & 24) != 0;
  const auto last = loop.run({call.in(3), call.in(4)}, keep);
  out = {by_time(loop.outputs, loop.reverse), last[0], last[1]};
  out.resize(5);
  std::vector<Tensor> cells, sums;
  for (auto& states : loop.next) cells.push_back(states[1]);
  for (auto& step : loop.steps) sums.push_back(step.hidden_gates);
  if (call.wanted & 8) out[3] = by_time(std::move(cells), loop.reverse);
  if (call.wanted & 16) out[4] = by_time(std::move(sums), loop.reverse);
}

void infer_lstm_sequence_backward(Infer& infer) {
  const TensorDesc &gates = infer.in(3), &c = infer.in(5);
  infer.output(dtype_of(gates), shape_of(gates));
  infer.output(dtype_of(c), shape_of(c));
  infer.output(dtype_of(c), shape_of(c));
  infer.output(dtype_of(c), shape_of(infer.in(4)));
}

void decompose_lstm_sequence_backward(const Call& call, Outputs& out) {
  const Tensor &gates = call.in(3), &all_cells = call.in(4), &weight_hh = call.in(6);
  RecurrentLoop loop{lstm_kind, gates, weight_hh, {}, call.attrs.get_bool("reverse")};
  const int64_t n = shape_of(weight_hh)[1];
  const auto sums = in_order(gates, loop.reverse), cells = in_order(all_cells, loop.reverse),
             hidden = in_order(sigmoid(gates.narrow(2, 3 * n, n)) * tanh(all_cells), loop.reverse);
  std::vector<Tensor> states = {call.in(7), call.in(5)};
  for (size_t i = 0; i < sums.size(); ++i) {
    loop.steps.push_back({sums[i], sums[i], std::move(states)});
    states = {hidden[i], cells[i]};
    loop.next.push_back(states);
  }
  std::vector<Tensor> grads = {call.optional(0), call.optional(1), call.optional(2)};
  if (!call.has(0) && !call.has(1) && !call.has(2)) grads[1] = zeros_like(call.in(5));
  auto g = loop.backward(grads);
  out = {g.input_gates, g.states[0], g.states[1], loop.hidden_before()};
}

}  // namespace

// | `lstm_sequence` | input_gates(t,n,4h), weight(4h,h), bias(4h)?, h(n,h), c(n,h) -> y(t,n,h),
//   h'(n,h), c'(n,h), cells(t,n,h)?, gates(t,n,4h)? | `reverse` bool | all steps at once: gates =
//   input_gates + h weightᵀ + bias, then as in `lstm_step`; with `reverse` from the last to the
//   first. h' and c' are those after the last step made. Asked for in f32 and f64; where it is not
//   offered, the steps are made one by one. `cpu` offers it for up to 2^19 elements of weight, and
//   2^16 a sequence in larger batches |
const Op lstm_sequence_op{{
    .name = "lstm_sequence",
    .inputs = "input_gates weight_hh bias_hh h c",
    .infer = infer_lstm_sequence,
    .decompose = decompose_lstm_sequence,
}};
// | `lstm_sequence_backward` | gy(t,n,h)?, gh'?, gc'?, gates, cells, c, weight, h ->
//   ginput_gates(t,n,4h), gh?, gc?, before(t,n,h)? | the same | an absent gradient is 0; `before`
//   is the hidden state before each step, computed again as sigmoid(o) tanh(cell) of the step that
//   comes earlier; gradients of weight and bias are products of ginput_gates with it, and sums |
const Op lstm_sequence_backward_op{{
    .name = "lstm_sequence_backward",
    .infer = infer_lstm_sequence_backward,
    .decompose = decompose_lstm_sequence_backward,
}};

}  // namespace tenon
