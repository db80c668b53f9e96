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

// Whether `cpu` computes in this type itself. Where it does, requests for which oneDNN is no faster
// are left to it. Nothing else computes in bf16, and slow code is better than none.
constexpr bool base_computes(dnnl_data_type_t type) { return type != dnnl_bf16; }
constexpr Code code_for(dnnl_data_type_t type) {
  return base_computes(type) ? Code::fast : Code::any;
}

// A plan for a bf16 output to which nothing is added up, because an operand has no elements: zeros,
// or the bias of its channel (input 2), of which `inner` elements each follow one another.
tn_plan* make_empty_sum(const Request& request, bool bias, int64_t inner, bool relu);

// relu of bf16 that keeps NaN and -0: everything else with a sign becomes 0.
constexpr uint16_t rectified(uint16_t y) { return y > 0x8000 && y <= 0xff80 ? 0 : y; }

// Elements of f32 in a vector register that oneDNN uses on this CPU: 4, 8 or 16.
int64_t vector_lanes();
// Whether the processor is by Intel. What is fast there, and how much, differs from others with the
// same instructions.
bool is_intel();

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace tenon::onednn
