#include <string_view>

#include <tenon/core/graph/passes/passes.h>
#include <tenon/core/graph/passes/pointwise_layout.h>

namespace tenon::graph {

namespace {

// Whether the node copies elements as they lie, of the same type, to new memory.
bool is_plain_copy(const TraceNode& node) {
  if (!node.plan || std::string_view(node.plan->name()) != "copy") return false;
  const PlanEntry& plan = *node.plan;
  if (node.num_inputs != 1 || node.num_outputs != 1 || !plan.call.inputs[0] ||
      plan.call.inputs[0]->dtype != plan.outputs[0].dtype)
    return false;
  const auto layout = pointwise_layout(node);
  return layout && layout->strides[0] == Shape::row_major(layout->shape);
}

// Whatever reads the copy has to find it in the source: the copy may be less than its memory.
bool may_read_source(Draft& draft, uint32_t i) {
  const TraceNode& node = draft.trace.nodes[i];
  const Access &from = draft.inputs_of(node)[0], &to = draft.outputs_of(node)[0];
  if (draft.needed_outside(to.value) || from.value == to.value || !draft.only_plans_use(to.value))
    return false;
  const uint64_t end = range_of(draft, node, node.num_inputs).end;
  uint32_t last = i;
  for (auto& use : draft.uses_of(to.value)) {
    if (use.node == i) continue;
    const Access& access = draft.trace.accesses[use.access];
    if (use.writes || use.node < i || access.offset < to.offset) return false;
    const TraceNode& reader = draft.trace.nodes[use.node];
    if (range_of(draft, reader, use.access - reader.first_access).end > end) return false;
    last = use.node;
  }
  for (auto& use : draft.uses_of(from.value))
    if (use.writes && use.node > i && use.node <= last) return false;
  return !draft.needed_outside(from.value) || draft.part_of(i) == draft.part_of(last);
}

}  // namespace

size_t remove_copies(Draft& draft) {
  Trace& trace = draft.trace;
  for (uint32_t i = 0; i < trace.nodes.size(); ++i) {
    if (!is_plain_copy(trace.nodes[i]) || !may_read_source(draft, i)) continue;
    const TraceNode& node = trace.nodes[i];
    const Access from = draft.inputs_of(node)[0], to = draft.outputs_of(node)[0];
    const int32_t input = draft.wiring.input_of_access[node.first_access];
    for (auto& use : draft.uses_of(to.value)) {
      if (use.node == i) continue;
      Access& access = trace.accesses[use.access];
      access = {from.value, from.offset + (access.offset - to.offset)};
      draft.wiring.input_of_access[use.access] = input;
    }
    draft.remove(i);
    draft.changed();
  }
  return draft.compact();
}

}  // namespace tenon::graph
