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

// The call with `out` for its result, and its layout.
struct Into {
  Call call;
  const TensorImpl* common;
  Into(const Tensor& out, const Call& c)
      : call{c.op, c.inputs, c.attrs, c.scalars, ~0u, &out}, common(common_layout(call)) {}
};

// Whether the call, as one that makes a new tensor, makes one of the dtype and shape of `t`. A plan
// is not made for that.
bool makes_like(const TensorImpl& t, const Call& call, PlanCache& plans) {
  const TensorImpl* const common = common_layout(call);
  if (const PlanEntry* known = plans.find_known(call, common)) {
    if (!known->plan || known->outputs.size() != 1) return false;
    const PlanOutput& made = known->outputs[0];
    return made.dtype == t.dtype && (common ? common->shape : made.shape) == t.shape;
  }
  const CallDesc desc(call, nullptr);
  require_scalars(desc);
  Infer infer(desc);
  call.op.infer(infer);
  return infer.outputs.size() == 1 && infer.outputs[0].kind == OutputKind::made &&
         infer.outputs[0].dtype == t.dtype && infer.outputs[0].shape == t.shape;
}

// The plan of the call, or null where the plugin, which may refuse to write over an input what it
// computes into new memory, has none.
PlanEntry* offered(const Into& into, PlanCache& plans) try {
  PlanEntry& entry = plans.find(into.call, into.common);
  return entry.plan && !entry.make_contiguous ? &entry : nullptr;
} catch (const UnsupportedError&) {
  return nullptr;
}

}  // namespace

const Tensor* run_over_target(const Call& call) {
  const Tensor* const target = std::exchange(write_over_target, nullptr);
  const TensorImpl& t = impl_of(*target);
  if (!call.op.pointwise || call.shape || t.numel == 0 || recording::here() ||
      !is_once_among(t, call.inputs) || !(t.contiguous || is_dense(t.shape, t.strides)))
    return nullptr;
  auto& plans = plans_of(working_context(t.device));
  const Into into(*target, call);
  PlanEntry* entry = plans.find_known(into.call, into.common);
  if (!entry || !entry->makes_like_out.load(std::memory_order_relaxed)) {
    if (!makes_like(t, call, plans)) return nullptr;
    entry = offered(into, plans);
    if (!entry) return nullptr;
    entry->makes_like_out.store(true, std::memory_order_relaxed);
  }
  run_plan_into(*entry, *target, into.call, into.common);
  return target;
}

void prepare_into(const Tensor& out, const Call& call) {
  const Into into(out, call);
  plans_of(working_context(out.device())).find(into.call, into.common);
}

}  // namespace tenon
