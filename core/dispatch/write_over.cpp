#include <tenon/core/base/recording.h>
#include <tenon/core/dispatch/plan_cache.h>
#include <tenon/core/dispatch/replica.h>
#include <tenon/core/dispatch/shares_memory.h>
#include <tenon/core/dispatch/write_over.h>
#include <tenon/core/error.h>
#include <tenon/core/layout.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

constinit thread_local const Tensor* write_over_target = nullptr;

namespace {

// Whether the target is one of the inputs and all others are apart from it, on its device.
bool is_once_among(const TensorImpl& target, Inputs inputs) {
  bool found = false;
  for (auto* input : inputs) {
    if (!input) continue;
    if (!input->defined()) return false;
    const TensorImpl& t = impl_of(*input);
    if (has_replicas(*input) || (&t == &target && found)) return false;
    if (&t != &target && (t.device != target.device || may_share_memory(t, target))) return false;
    found = found || &t == &target;
  }
  return found;
}

// The plan of a call whose result is `out`.
const PlanEntry& entry_into(const Tensor& out, const Call& call) {
  const Call here{call.op, call.inputs, call.attrs, call.scalars, ~0u, &out};
  return plans_of(working_context(out.device())).find(here, common_layout(here));
}

// A plugin may refuse to write over an input what it computes into new memory.
bool is_offered_in_place(const Tensor& target, const Call& call) try {
  return entry_into(target, call).plan;
} catch (const UnsupportedError&) {
  return false;
}

}  // namespace

const Tensor* run_over_target(const Call& call) {
  const Tensor* const target = std::exchange(write_over_target, nullptr);
  const TensorImpl& t = impl_of(*target);
  if (!call.op.pointwise || t.numel == 0 || recording::here() || !is_once_among(t, call.inputs) ||
      !(t.contiguous || is_dense(t.shape, t.strides)))
    return nullptr;
  // The plan of the call as one that makes a new tensor says what comes out.
  const TensorImpl* const common = common_layout(call);
  const PlanEntry& entry = plans_of(working_context(t.device)).find(call, common);
  if (!entry.plan || entry.outputs.size() != 1) return nullptr;
  const PlanOutput& made = entry.outputs[0];
  if (made.dtype != t.dtype || !((common ? common->shape : made.shape) == t.shape)) return nullptr;
  if (!is_offered_in_place(*target, call)) return nullptr;
  run_into(*target, call);
  return target;
}

void prepare_into(const Tensor& out, const Call& call) { entry_into(out, call); }

}  // namespace tenon
