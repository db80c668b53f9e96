#include <algorithm>

#include <tenon/core/graph/passes/passes.h>

namespace tenon::graph {

namespace {

// What is folded stays in memory from then on, so large tensors are computed again each time.
constexpr uint64_t kMaxBytes = 64 << 10;

// Whether the node computes new small tensors, which nobody changes, of constants alone.
bool is_constant(Draft& draft, const TraceNode& node) {
  if (!node.plan || node.draw >= 0 || !node.living.empty()) return false;
  for (auto& input : draft.inputs_of(node))
    if (input.value != kAbsent && !draft.trace.values[input.value].constant) return false;
  for (auto& output : draft.outputs_of(node)) {
    if (output.value == kAbsent) continue;
    if (draft.needed_outside(output.value) || !draft.has_one_writer(output.value) ||
        !draft.only_plans_use(output.value))
      return false;
  }
  return true;
}

}  // namespace

size_t fold_constants(Draft& draft) {
  Trace& trace = draft.trace;
  uint64_t total = 0;
  for (uint32_t i = 0; i < trace.nodes.size(); ++i) {
    const TraceNode& node = trace.nodes[i];
    const bool one_device = trace.constants.empty() || !node.plan ||
                            trace.constants[0].plan->context == node.plan->context;
    if (!one_device || !is_constant(draft, node)) continue;
    uint64_t bytes = 0;
    for (auto& output : draft.outputs_of(node))
      if (output.value != kAbsent) bytes += trace.values[output.value].bytes;
    if (total + bytes > kMaxBytes) continue;
    total += bytes;
    for (auto& output : draft.outputs_of(node))
      if (output.value != kAbsent) trace.values[output.value].constant = true;
    trace.constants.push_back(node);
    draft.remove(i);
  }
  return draft.compact();
}

}  // namespace tenon::graph
