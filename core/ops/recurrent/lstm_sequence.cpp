// lstm_sequence, all steps of a layer at once, where a plugin offers that (layers.h). It is not
// recorded: the loop of which it is a part is one node of the graph
// (core/autograd/recurrent_sequence.cpp).
#include <tenon/core/format.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/recurrent/layers.h>
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
  const bool reverse = call.attrs.get_bool("reverse");
  Tensor h = call.in(3), c = call.in(4);
  std::vector<Tensor> y, cells, sums;
  for (auto& input : in_order(call.in(0), reverse)) {
    sums.push_back(input + linear(h, call.in(1), call.optional(2)));
    std::tie(h, c) = lstm_step(sums.back(), c);
    y.push_back(h);
    cells.push_back(c);
  }
  out = {by_time(y, reverse), h, c};
  out.resize(5);
  if (call.wanted & 8) out[3] = by_time(cells, reverse);
  if (call.wanted & 16) out[4] = by_time(sums, reverse);
}

void infer_lstm_sequence_backward(Infer& infer) {
  const TensorDesc &gates = infer.in(3), &c = infer.in(5);
  infer.output(dtype_of(gates), shape_of(gates));
  infer.output(dtype_of(c), shape_of(c));
  infer.output(dtype_of(c), shape_of(c));
  infer.output(dtype_of(c), shape_of(infer.in(4)));
}

void decompose_lstm_sequence_backward(const Call& call, Outputs& out) {
  const bool reverse = call.attrs.get_bool("reverse");
  const auto sums = in_order(call.in(3), reverse), cells = in_order(call.in(4), reverse);
  std::vector<Tensor> gy(sums.size()), gates(sums.size()), before;
  if (call.has(0)) gy = in_order(call.in(0), reverse);
  Tensor gh = call.optional(1), gc = call.optional(2);
  for (size_t i = sums.size(); i-- > 0;) {
    if (gy[i].defined()) gh = gh.defined() ? gh + gy[i] : gy[i];
    Tensor g[2];
    if (!gh.defined() && !gc.defined()) gh = zeros_like(call.in(5));
    lstm_step_backward(gh, gc, sums[i], i == 0 ? call.in(5) : cells[i - 1], g);
    gates[i] = g[0];
    gh = matmul(g[0], call.in(6));
    gc = g[1];
  }
  out = {by_time(gates, reverse), gh, gc};
  out.resize(4);
  if (!(call.wanted & 8)) return;
  const int64_t n = shape_of(call.in(5))[1];
  before = in_order(sigmoid(call.in(3).narrow(2, 3 * n, n)) * tanh(call.in(4)), reverse);
  before.insert(before.begin(), call.in(7));
  before.pop_back();
  out[3] = by_time(before, reverse);
}

}  // namespace

const Op lstm_sequence_op{{
    .name = "lstm_sequence",
    .inputs = "input_gates weight_hh bias_hh h c",
    .infer = infer_lstm_sequence,
    .decompose = decompose_lstm_sequence,
}};
const Op lstm_sequence_backward_op{{
    .name = "lstm_sequence_backward",
    .infer = infer_lstm_sequence_backward,
    .decompose = decompose_lstm_sequence_backward,
}};

}  // namespace tenon
