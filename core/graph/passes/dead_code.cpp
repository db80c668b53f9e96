#include <algorithm>

#include <tenon/core/graph/passes/passes.h>

namespace tenon::graph {

// From the last node to the first: one that writes nothing which is needed is not needed itself. A
// value counts as a whole, because parts of it may be written one by one. What is no plan stays.
size_t remove_dead_code(Draft& draft) {
  const Trace& trace = draft.trace;
  std::vector<bool> needed(trace.values.size());
  for (uint32_t v = 0; v < needed.size(); ++v) needed[v] = draft.needed_outside(v);
  for (auto i = static_cast<uint32_t>(trace.nodes.size()); i-- > 0;) {
    const TraceNode& node = trace.nodes[i];
    const auto outputs = draft.outputs_of(node);
    const bool live =
        !node.plan || std::any_of(outputs.begin(), outputs.end(), [&](const Access& a) {
          return a.value != kAbsent && needed[a.value];
        });
    if (!live) {
      draft.remove(i);
      continue;
    }
    for (auto& input : draft.inputs_of(node))
      if (input.value != kAbsent) needed[input.value] = true;
  }
  return draft.compact();
}

}  // namespace tenon::graph
