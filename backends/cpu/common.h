// What every kernel file of the cpu plugin shares: the host's services, dispatch on dtype, small questions about descriptors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include <tenon/plugins/abi/abi.h>
#include <tenon/plugins/sdk/sdk.h>

namespace tenon::cpu {

using sdk::Request;

// The services of the host that loaded the plugin; valid from init on.
const tn_host& host();

// Threads that parallel_for may use at once, and so the number of slots.
inline uint32_t thread_count() { return host().thread_count(host().context); }

// body(begin, end, slot) over [0, n) in parts of at least `grain`; inline where n <= grain. `body` may throw.
template <class F>
void parallel_for(int64_t n, int64_t grain, F&& body) {
  sdk::parallel_for(host(), n, grain, std::forward<F>(body));
}

// Elements of a cheap operator below which waking a second thread costs more than it saves.
inline constexpr int64_t kGrain = 32 * 1024;

[[noreturn]] inline void refuse_dtype(const Request& request, tn_dtype dtype) {
  sdk::unsupported("cpu: " + std::string(request.op()) + " does not take " + sdk::dtype_name(dtype));
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

inline bool is_float(tn_dtype t) { return t <= TN_BF16; }

inline void require_contiguous(const Request& request, const tn_tensor_desc& d) {
  if (!sdk::is_contiguous(d)) sdk::unsupported("cpu: " + std::string(request.op()) + ": not contiguous");
}

// A plan that does nothing, for outputs without elements.
inline tn_plan* empty_plan() {
  return sdk::make_plan([](const tn_run&) {}, {.workspace_bytes = 0, .cost_ns = 1});
}

}  // namespace tenon::cpu
