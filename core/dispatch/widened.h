// Operators in half types that no plugin of the device offers in them: they are computed in f32 and
// rounded once, which is also more exact than a decomposition whose every step is rounded.
#pragma once

#include <tenon/core/dispatch/plan_cache.h>

namespace tenon {

// Returns whether a call that no plugin takes can be made in f32 instead: it has an input or a
// given output of f16 or bf16, and is not a copy, which the conversions themselves need.
bool can_be_widened(const CallDesc& call);
// Returns the call in f32.
CallDesc widened(const CallDesc& call);

// Converts the inputs of f16 and bf16 to f32, makes the call with them, and converts the results to
// the types that the entry has. Tensors that the call changes in place get their new values.
void run_widened(const PlanEntry& entry, const Call& call, Outputs& outputs);
// The same for a call with a given output.
void run_into_widened(const PlanEntry& entry, const Call& call);

}  // namespace tenon
