// Which strides the core proposes for the outputs of a call. For pointwise operators it decides
// alone: the plugin sees the dimensions in the order of memory, in which new outputs are row-major.
// Other operators keep a format of channels if a plugin of the device takes it.
#pragma once

#include <tenon/core/dispatch/plan_cache.h>

namespace tenon {

// Gives the outputs of a pointwise operator the order in memory that follows from its tensors.
void order_dimensions(PlanEntry& entry);
// Returns whether a call that changes lists of tensors in place, element by element, can take each
// of them as a line of elements: what belongs together lies in one order without gaps.
bool lie_alike(const PlanEntry& entry);
// Returns the format that is proposed for a call; contiguous_format where there is nothing to
// propose.
MemoryFormat proposed_format(const CallDesc& call);
// Gives new outputs their strides in a format: those of its rank; all others are row-major.
void set_format(PlanEntry& entry, MemoryFormat format);
// Returns whether an input that has the rank of the format is not in it.
bool any_differs(const CallDesc& call, MemoryFormat format);

}  // namespace tenon
