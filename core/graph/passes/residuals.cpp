// Additions of a tensor become part of the product, convolution or batch norm whose result they
// take, as at the end of a block of a residual network.
#include <optional>
#include <string_view>

#include <tenon/core/graph/passes/folding.h>
#include <tenon/core/ops/pointwise/finish.h>
#include <tenon/core/ops/pointwise/fused.h>

namespace tenon::graph {

namespace {

bool adds_two_tensors(const TraceNode& node) {
  return node.plan && node.num_inputs == 2 && node.num_scalars == 0 && node.num_outputs == 1 &&
         std::string_view(node.plan->call.op->name) == "add" && can_be_fused(*node.plan->call.op) &&
         node.plan->call.attrs.all().empty();
}

// Whether the sum goes on into pointwise operators, which read both tensors as they pass: one walk
// through memory, as where the sum is made elsewhere. An activation goes where the sum goes.
bool is_part_of_more(Draft& draft, uint32_t sum) {
  const TraceNode& node = draft.trace.nodes[sum];
  const uint32_t value = draft.outputs_of(node)[0].value;
  if (value == kAbsent) return false;
  for (auto& use : draft.uses_of(value)) {
    if (use.node <= sum) continue;
    const TraceNode& next = draft.trace.nodes[use.node];
    return next.plan && can_be_fused(*next.plan->call.op) && !is_activation(*next.plan->call.op);
  }
  return false;
}

// The operand that is made later is computed while the other one is there already.
std::optional<Folding> folding_of(Draft& draft, uint32_t sum, uint32_t& added) {
  std::optional<Folding> found;
  for (const uint32_t taken : {0u, 1u}) {
    auto folding = Folding::of(draft, sum, taken);
    if (!folding || folding->product().plan->call.attrs.has(kResidual)) continue;
    const auto at = residual_input(*folding->product().plan->call.op);
    if (!at || folding->product().num_inputs != *at) continue;
    if (found && found->place() > folding->place()) continue;
    added = 1 - taken;
    found.emplace(*folding);
  }
  return found;
}

}  // namespace

size_t fold_residuals(Draft& draft, bool fuses, Notes& notes) {
  const auto count = static_cast<uint32_t>(draft.trace.nodes.size());
  for (uint32_t i = 0; i < count; ++i) {
    if (!adds_two_tensors(draft.trace.nodes[i]) || (fuses && is_part_of_more(draft, i))) continue;
    uint32_t added = 0;
    auto folding = folding_of(draft, i, added);
    if (!folding) continue;
    const PlanOutput& made = folding->product().plan->outputs[0];
    folding->make(
        [&](CallDesc& call) {
          call.attrs.set(kResidual, true);
          call.inputs.push_back(
              describe(made.dtype, made.shape,
                       made.row_major ? Shape::row_major(made.shape) : made.strides));
        },
        added, notes);
  }
  return draft.compact();
}

}  // namespace tenon::graph
