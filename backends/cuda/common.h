// What every kernel file of the cuda plugin shares: plans, dispatch on dtype, small questions about descriptors.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <tenon/plugins/abi/abi.h>
#include <tenon/plugins/sdk/sdk.h>

#include "check.h"
#include "device.h"

namespace tenon::cuda {

using sdk::Request;

// A plan whose run is `body(const tn_run&)` with the stream's device current.
template <class F>
tn_plan* make_plan(F body, uint64_t workspace_bytes = 0) {
  auto run = [body = std::move(body)](const tn_run& run) {
    CurrentDevice current(run.stream->device);
    body(run);
  };
  return sdk::make_plan(std::move(run), {.workspace_bytes = workspace_bytes, .cost_ns = 0});
}

// A plan that does nothing, for outputs without elements.
inline tn_plan* empty_plan() {
  return sdk::make_plan([](const tn_run&) {});
}

// A plan that fills its (contiguous) output with zeros, for gradients of what no element took part in.
inline tn_plan* zero_plan(const tn_tensor_desc& out) {
  const auto bytes = static_cast<size_t>(sdk::numel(out)) * sdk::dtype_size(out.dtype);
  return make_plan(
      [bytes](const tn_run& run) { check(cudaMemsetAsync(run.outputs[0], 0, bytes, run.stream->handle), "cudaMemsetAsync"); });
}

[[noreturn]] inline void refuse_dtype(const Request& request, tn_dtype dtype) {
  sdk::unsupported("cuda: " + std::string(request.op()) + " does not take " + sdk::dtype_name(dtype));
}

// Calls f(float{}) or f(double{}) for the dtype; refuses others.
template <class F>
auto with_float(const Request& request, tn_dtype dtype, F&& f) {
  switch (dtype) {
    case TN_F32:
      return f(float{});
    case TN_F64:
      return f(double{});
    default:
      refuse_dtype(request, dtype);
  }
}

// Calls f(int64_t{}) or f(int32_t{}) for an index dtype; refuses others.
template <class F>
auto with_index(const Request& request, tn_dtype dtype, F&& f) {
  switch (dtype) {
    case TN_I64:
      return f(int64_t{});
    case TN_I32:
      return f(int32_t{});
    default:
      refuse_dtype(request, dtype);
  }
}

// Calls f(uintN_t{}) for the width of a dtype, for operators that only move elements.
template <class F>
auto with_width(tn_dtype dtype, F&& f) {
  switch (sdk::dtype_size(dtype)) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    default:
      return f(uint64_t{});
  }
}

inline void require_contiguous(const Request& request, const tn_tensor_desc& d) {
  if (!sdk::is_contiguous(d)) sdk::unsupported("cuda: " + std::string(request.op()) + ": not contiguous");
}

}  // namespace tenon::cuda
