// "lstm_step", "gru_step", "lstm_sequence" and their gradients, read and checked once for every
// plugin. All tensors are contiguous.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include <tenon/plugins/sdk/requests/checks.h>

namespace tenon::sdk {

// A request of one step of `batch` sequences of `hidden` values each.
struct RecurrentStepRequest {
  tn_dtype dtype;
  int64_t batch, hidden;

  // Reads "lstm_step" (gates, c -> h, c'), "lstm_step_backward" (gh?, gc'?, gates, c -> ggates,
  // gc), "gru_step" (input gates, hidden gates, h -> h') or "gru_step_backward" (g, input gates,
  // hidden gates, h -> their gradients). Gates are (batch, 4 hidden) and (batch, 3 hidden), all
  // else is (batch, hidden).
  static RecurrentStepRequest from(const Request& request);

 private:
  void require(const tn_tensor_desc& d, int64_t gates) const {
    if (d.dtype != dtype || d.rank != 2 || d.shape[0] != batch || d.shape[1] != gates * hidden)
      invalid("tensors must be ({}, {}) of {}, found {} of {}", batch, gates * hidden,
              dtype_name(dtype), shape_text(d), dtype_name(d.dtype));
    require_contiguous(d);
  }
};

inline RecurrentStepRequest RecurrentStepRequest::from(const Request& request) {
  require_op(request, {"lstm_step", "lstm_step_backward", "gru_step", "gru_step_backward"});
  const bool lstm = request.op() == "lstm_step" || request.op() == "lstm_step_backward";
  const bool backward = request.op() == "lstm_step_backward" || request.op() == "gru_step_backward";
  const size_t first = !backward ? 0 : lstm ? 2 : 1, gated = lstm ? 1 : 2;
  const auto& state = request.input(first + gated);
  if (state.rank != 2) invalid("a state has 2 dimensions, found {}", state.rank);
  const RecurrentStepRequest r{state.dtype, state.shape[0], state.shape[1]};
  for (size_t i = 0; i < first; ++i)
    if (!lstm || request.has_input(i)) r.require(request.input(i), 1);
  for (size_t i = 0; i <= gated; ++i)
    r.require(request.input(first + i), i < gated ? (lstm ? 4 : 3) : 1);
  require_outputs(request, backward ? gated + 1 : gated == 1 ? 2 : 1);
  for (size_t i = 0; i < request.num_outputs(); ++i)
    if (request.has_output(i))
      r.require(request.output(i), backward && i < gated ? (lstm ? 4 : 3) : 1);
  return r;
}

// All steps of `batch` sequences of an LSTM with `hidden` values each.
struct RecurrentSequenceRequest {
  tn_dtype dtype;
  int64_t length, batch, hidden;
  bool reverse, has_bias, has_gy;

  // Elements of the weight, (4 hidden, hidden).
  int64_t weights() const { return 4 * hidden * hidden; }
  // Where the tensors have what belongs to step i.
  int64_t time_of(int64_t i) const { return reverse ? length - 1 - i : i; }

  // Reads "lstm_sequence" (input gates, weight, bias?, h, c -> y, h', c', cells?, gates?) or
  // "lstm_sequence_backward" (gy?, gh'?, gc'?, gates, cells, c, weight, h -> ginput_gates, gh?,
  // gc?, before?). Gates are (length, batch, 4 hidden), y, cells and `before`, the hidden states
  // before each step, (length, batch, hidden), and the states (batch, hidden).
  static RecurrentSequenceRequest from(const Request& request);

 private:
  void require(const tn_tensor_desc& d, std::initializer_list<int64_t> shape) const {
    if (d.dtype != dtype || d.rank != shape.size() ||
        !std::equal(shape.begin(), shape.end(), d.shape))
      invalid(
          "tensors must be of {} and of the shapes that {} steps of {} sequences of {} values "
          "have, found {} of {}",
          dtype_name(dtype), length, batch, hidden, shape_text(d), dtype_name(d.dtype));
    require_contiguous(d);
  }
};

inline RecurrentSequenceRequest RecurrentSequenceRequest::from(const Request& request) {
  require_op(request, {"lstm_sequence", "lstm_sequence_backward"});
  const bool backward = request.op() == "lstm_sequence_backward";
  const auto& gates = request.input(backward ? 3 : 0);
  if (gates.rank != 3) invalid("gates have 3 dimensions, found {}", gates.rank);
  const RecurrentSequenceRequest r{gates.dtype,
                                   gates.shape[0],
                                   gates.shape[1],
                                   gates.shape[2] / 4,
                                   request.get_bool("reverse"),
                                   !backward && request.has_input(2),
                                   backward && request.has_input(0)};
  const auto of_steps = [&](const tn_tensor_desc& d) {
    r.require(d, {r.length, r.batch, r.hidden});
  };
  const auto of_gates = [&](const tn_tensor_desc& d) {
    r.require(d, {r.length, r.batch, 4 * r.hidden});
  };
  const auto of_state = [&](const tn_tensor_desc& d) { r.require(d, {r.batch, r.hidden}); };
  of_gates(gates);
  r.require(request.input(backward ? 6 : 1), {4 * r.hidden, r.hidden});
  if (r.has_bias) r.require(request.input(2), {4 * r.hidden});
  if (r.has_gy) of_steps(request.input(0));
  for (size_t i = 1; backward && i < 3; ++i)
    if (request.has_input(i)) of_state(request.input(i));
  if (backward) of_steps(request.input(4)), of_state(request.input(5)), of_state(request.input(7));
  if (!backward) of_state(request.input(3)), of_state(request.input(4));
  require_outputs(request, backward ? 4 : 5);
  if (backward) of_gates(request.output(0));
  if (!backward) of_steps(request.output(0));
  for (size_t i = 1; i < 3; ++i)
    if (!backward || request.has_output(i)) of_state(request.output(i));
  if (request.has_output(3)) of_steps(request.output(3));
  if (!backward && request.has_output(4)) of_gates(request.output(4));
  return r;
}

}  // namespace tenon::sdk
