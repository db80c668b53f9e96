// Activations become part of the product, convolution or batch norm whose result they take.
#include <tenon/core/graph/passes/folding.h>
#include <tenon/core/ops/pointwise/finish.h>

namespace tenon::graph {

size_t fold_activations(Draft& draft, Notes& notes) {
  const auto count = static_cast<uint32_t>(draft.trace.nodes.size());
  for (uint32_t i = 0; i < count; ++i) {
    const TraceNode& node = draft.trace.nodes[i];
    if (!node.plan || node.num_inputs != 1 || !is_activation(*node.plan->call.op) ||
        !node.plan->call.attrs.all().empty())
      continue;
    if (auto folding = Folding::of(draft, i, 0))
      folding->make([&](CallDesc& call) { call.attrs.set(kActivation, node.plan->call.op->name); },
                    {}, notes);
  }
  return draft.compact();
}

}  // namespace tenon::graph
