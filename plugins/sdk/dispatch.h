// From a request's dtypes to types of C++, and what most kernels ask of their operands. Refusals
// need no name of the plugin: the host puts it before them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <tenon/plugins/sdk/sdk.h>

namespace tenon::sdk {

[[noreturn]] inline void refuse_dtype(const Request& request, tn_dtype dtype) {
  unsupported(std::string(request.op()) + " does not take " + dtype_name(dtype));
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
  switch (dtype_size(dtype)) {
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

inline bool is_float(tn_dtype t) { return t <= TN_BF16; }

inline void require_contiguous(const Request& request, const tn_tensor_desc& d) {
  if (!is_contiguous(d)) unsupported(std::string(request.op()) + ": not contiguous");
}

// A plan that does nothing, for outputs without elements.
inline tn_plan* empty_plan() {
  return make_plan([](const tn_run&) {}, {.workspace_bytes = 0, .cost_ns = 1});
}

}  // namespace tenon::sdk
