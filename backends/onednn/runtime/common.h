// What every kernel file of the onednn overlay shares: the host's services and small questions
// about requests.
#pragma once

#include <cstdint>
#include <utility>

#include <tenon/plugins/abi/abi.h>
#include <tenon/plugins/sdk/dispatch.h>
#include <tenon/plugins/sdk/requests/checks.h>

#include "runtime/kept.h"
#include "runtime/primitive.h"

namespace tenon::onednn {

using sdk::refuse_dtype, sdk::Request, sdk::require_contiguous, sdk::unsupported;

// Threads that parallel_for may use at once.
inline int64_t thread_count() { return host().thread_count(host().context); }

// The dtype as oneDNN calls it, where this CPU computes in it; refuses others with the reason.
dnnl_data_type_t compute_type(tn_dtype dtype);

// Elements of f32 in a vector register that oneDNN uses on this CPU: 4, 8 or 16.
int64_t vector_lanes();

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace tenon::onednn
