// "lstm_step", "gru_step" and their gradients, read and checked once for every plugin. All tensors
// are contiguous.
#pragma once

#include <cstdint>

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

}  // namespace tenon::sdk
