// Where autograd takes part in a call. Defined in core/autograd, which rests on operators; dispatch
// knows of it no more than this.
#pragma once

#include <span>

#include <tenon/core/dispatch/op.h>

namespace tenon {

// Records a call as the user made it: replicas are not resolved.
void record(const Call& call, std::span<const Tensor> outputs);

inline bool needs_recording(const Op& op, Inputs inputs) {
  if (!op.gradient || !grad_enabled()) return false;
  for (auto* t : inputs)
    if (t && t->requires_grad()) return true;
  return false;
}

}  // namespace tenon
