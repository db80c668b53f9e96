// The function through which autograd takes part in a call. It is defined in core/autograd, which
// is built on operators; dispatch knows no more of autograd than this.
#pragma once

#include <span>

#include <tenon/core/dispatch/op.h>

namespace tenon {

// Records a call as the user made it, before replicas are resolved.
void record(const Call& call, std::span<const Tensor> outputs);

// Returns whether a backward pass has gone through the history of the tensor and freed what it
// needs, so that another one would be refused. A tensor without a history has none to spend.
bool history_is_spent(const Tensor& tensor);
// Returns a node that takes the place of such a history, so that nothing holds the leaves to which
// that leads: it refuses a pass in the same words. Returns null if the history is not spent.
Ref<Node> spent_history_like(const Tensor& tensor);

inline bool needs_recording(const Op& op, Inputs inputs) {
  if (!op.gradient || !grad_enabled()) return false;
  for (auto* t : inputs)
    if (t && t->requires_grad()) return true;
  return false;
}

}  // namespace tenon
