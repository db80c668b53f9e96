// What every kernel file of the cpu plugin shares: the host's services, dispatch on dtype, small
// questions about descriptors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include <tenon/plugins/abi/abi.h>
#include <tenon/plugins/sdk/dims.h>
#include <tenon/plugins/sdk/dispatch.h>
#include <tenon/plugins/sdk/requests/checks.h>

namespace tenon::cpu {

using sdk::empty_plan, sdk::is_float, sdk::Lines, sdk::refuse_dtype, sdk::Request,
    sdk::require_contiguous, sdk::with_float, sdk::with_index, sdk::with_number, sdk::with_width;

inline bool has_16_bits(tn_dtype dtype) { return dtype == TN_F16 || dtype == TN_BF16; }
// The dtype that kernels compute in: f16 and bf16 are computed as f32.
inline tn_dtype computed_as(tn_dtype dtype) { return has_16_bits(dtype) ? TN_F32 : dtype; }

// The services of the host that loaded the plugin; valid from init on.
const tn_host& host();

// Threads that parallel_for may use at once, and so the number of slots.
inline uint32_t thread_count() { return host().thread_count(host().context); }

// body(begin, end, slot) over [0, n) in parts of at least `grain`; inline where n <= grain. `body`
// may throw.
template <class F>
void parallel_for(int64_t n, int64_t grain, F&& body) {
  sdk::parallel_for(host(), n, grain, std::forward<F>(body));
}

// Elements of a cheap operator below which waking a second thread costs more than it saves.
inline constexpr int64_t kGrain = 32 * 1024;

}  // namespace tenon::cpu
