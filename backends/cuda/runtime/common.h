// What every kernel file of the cuda plugin shares: plans, dispatch on dtype, small questions about
// descriptors.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <tenon/plugins/abi/abi.h>
#include <tenon/plugins/sdk/dims.h>
#include <tenon/plugins/sdk/dispatch.h>
#include <tenon/plugins/sdk/requests/checks.h>

#include "runtime/check.h"
#include "runtime/device.h"

namespace tenon::cuda {

using sdk::empty_plan, sdk::Lines, sdk::refuse_dtype, sdk::Request, sdk::require_contiguous,
    sdk::with_float, sdk::with_index, sdk::with_number, sdk::with_width;

using sdk::shape_text;

// One line in the host's log.
void write_log(tn_log_level level, const std::string& message);

// A plan whose run is `body(const tn_run&)` with the stream's device current.
template <class F>
tn_plan* make_plan(F body, uint64_t workspace_bytes = 0) {
  auto run = [body = std::move(body)](const tn_run& run) {
    CurrentDevice current(run.stream->device);
    body(run);
  };
  return sdk::make_plan(std::move(run), {.workspace_bytes = workspace_bytes, .cost_ns = 0});
}

// A plan that fills its (contiguous) output with zeros, for gradients of what no element took part
// in.
inline tn_plan* zero_plan(const tn_tensor_desc& out) {
  const auto bytes = static_cast<size_t>(sdk::numel(out)) * sdk::dtype_size(out.dtype);
  return make_plan([bytes](const tn_run& run) {
    check(cudaMemsetAsync(run.outputs[0], 0, bytes, run.stream->handle), "cudaMemsetAsync");
  });
}

}  // namespace tenon::cuda
