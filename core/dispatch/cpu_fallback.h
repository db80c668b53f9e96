// Operators that the device of their tensors lacks, computed on the CPU: those that are
// `offered_by_cpu`, and any others with TENON_CPU_FALLBACK.
#pragma once

#include <tenon/core/dispatch/plan_cache.h>

namespace tenon {

// Copies the inputs to the CPU, computes there, and copies the results back. The entry says that
// the device of the call has no plan for it. The first call of each operator prints a line.
void run_on_cpu(const PlanEntry& entry, const Call& call, Outputs& outputs);
// The same for a call with a given output.
void run_into_on_cpu(const PlanEntry& entry, const Call& call);

}  // namespace tenon
