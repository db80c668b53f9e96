#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/error.h>
#include <tenon/core/graph/passes/draft.h>

namespace tenon::graph {

Draft::Draft(Trace& t, Wiring& w)
    : trace(t), wiring(w), removed_(t.nodes.size()), kept_(t.values.size()) {
  for (auto& kept : t.kept) kept_[kept.value] = true;
}

void Draft::replace(uint32_t node, Replacement&& by) {
  TraceNode& n = trace.nodes[node];
  n.plan = std::move(by.plan);
  n.first_access = static_cast<uint32_t>(trace.accesses.size());
  n.num_inputs = static_cast<uint32_t>(by.inputs.size());
  n.num_outputs = static_cast<uint32_t>(by.outputs.size());
  trace.accesses.insert(trace.accesses.end(), by.inputs.begin(), by.inputs.end());
  trace.accesses.insert(trace.accesses.end(), by.outputs.begin(), by.outputs.end());
  auto& wired = wiring.input_of_access;
  wired.insert(wired.end(), by.inputs_of.begin(), by.inputs_of.end());
  n.first_scalar = static_cast<uint32_t>(trace.scalars.size());
  n.num_scalars = static_cast<uint32_t>(by.scalars.size());
  trace.scalars.insert(trace.scalars.end(), by.scalars.begin(), by.scalars.end());
  n.outputs_hold_values = by.outputs_hold_values;
  n.flat = n.plan->flattened;
  n.draw = -1;
  n.living.clear();
  changed();
}

size_t Draft::compact() {
  size_t at = 0, i = 0;
  for (auto& part : trace.parts) {
    const size_t end = part.end_node;
    part.first_node = static_cast<uint32_t>(at);
    for (; i < end; ++i)
      if (!removed_[i]) {
        if (at != i) trace.nodes[at] = std::move(trace.nodes[i]);
        ++at;
      }
    part.end_node = static_cast<uint32_t>(at);
  }
  const size_t count = trace.nodes.size() - at;
  trace.nodes.resize(at);
  removed_.assign(at, false);
  changed();
  return count;
}

void Draft::build_uses() {
  first_use_.assign(trace.values.size() + 1, 0);
  const auto each = [this](auto&& f) {
    for (uint32_t i = 0; i < trace.nodes.size(); ++i) {
      if (removed_[i]) continue;
      const TraceNode& n = trace.nodes[i];
      for (uint32_t k = 0; k < n.num_inputs + n.num_outputs; ++k)
        if (const uint32_t v = trace.accesses[n.first_access + k].value; v != kAbsent)
          f(v, Use{i, n.first_access + k, k >= n.num_inputs});
    }
  };
  each([this](uint32_t v, const Use&) { ++first_use_[v + 1]; });
  for (size_t v = 1; v < first_use_.size(); ++v) first_use_[v] += first_use_[v - 1];
  uses_.resize(first_use_.back());
  std::vector<uint32_t> next(first_use_.begin(), first_use_.end() - 1);
  each([&](uint32_t v, const Use& use) { uses_[next[v]++] = use; });
  uses_are_known_ = true;
}

std::span<const Use> Draft::uses_of(uint32_t value) {
  if (!uses_are_known_) build_uses();
  return {uses_.data() + first_use_[value], uses_.data() + first_use_[value + 1]};
}

bool Draft::has_one_writer(uint32_t value) {
  size_t writers = 0;
  for (auto& use : uses_of(value)) writers += use.writes;
  return writers == 1;
}

bool Draft::only_plans_use(uint32_t value) {
  const auto uses = uses_of(value);
  return std::all_of(uses.begin(), uses.end(),
                     [this](const Use& use) { return bool(trace.nodes[use.node].plan); });
}

uint32_t Draft::part_of(uint32_t node) const {
  uint32_t part = 0;
  while (trace.parts[part].end_node <= node) ++part;
  return part;
}

Ref<PlanEntry> make_joint_plan(const PlanEntry& first, uint64_t cost, CallDesc call,
                               std::string& why) {
  try {
    auto plan = plans_of(*first.context).make_apart(std::move(call));
    if (!plan->plan || plan->make_contiguous)
      why = "the plugin refuses it" + plan->refusals;
    else if (plan->planner != first.planner)
      why = fmt::format("{} computes the first, and {} would compute all", first.planner->name(),
                        plan->planner->name());
    else if (plan->cost_ns > cost)
      why = fmt::format("together they would take {} ns instead of {}", plan->cost_ns, cost);
    else
      return plan;
  } catch (const Error& e) {
    why = e.what();
  }
  return {};
}

Range range_of(const Draft& draft, const TraceNode& node, uint32_t k) {
  const Access& access = draft.trace.accesses[node.first_access + k];
  if (access.value == kAbsent) return {};
  if (!node.plan) return {access.value, 0, draft.trace.values[access.value].bytes};
  const bool output = k >= node.num_inputs;
  auto& footprints = output ? node.plan->written : node.plan->read;
  const size_t i = output ? k - node.num_inputs : k;
  const uint64_t bytes =
      i < footprints.size() ? footprints[i].span() : draft.trace.values[access.value].bytes;
  return {access.value, access.offset, access.offset + bytes};
}

}  // namespace tenon::graph
