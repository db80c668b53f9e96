#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/graph/passes/folding.h>
#include <tenon/core/graph/passes/pointwise_layout.h>
#include <tenon/core/layout.h>
#include <tenon/core/ops/pointwise/finish.h>

namespace tenon::graph {

namespace {

// What one plan does, of tensors as they lie, with numbers that are always the same.
bool is_plain(const TraceNode& node) {
  return node.plan && node.plan->plan && !node.plan->make_contiguous && node.draw < 0 &&
         node.living.empty() && node.num_outputs > 0;
}

// Elements as the product writes them, each of which the other node replaces where it lies.
bool takes_all_of(const TraceNode& node, const PlanOutput& product) {
  const auto layout = pointwise_layout(node);
  if (!layout || layout->shape.numel() != product.numel || product.kind != OutputKind::made ||
      !(product.row_major || is_dense(product.shape, product.strides)) ||
      node.plan->outputs[0].dtype != product.dtype)
    return false;
  const Strides row_major = Shape::row_major(layout->shape);
  const auto& inputs = node.plan->call.inputs;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i] || inputs[i]->dtype != product.dtype || layout->strides[i] != row_major)
      return false;
  return true;
}

}  // namespace

std::optional<Folding> Folding::of(Draft& draft, uint32_t last, uint32_t taken) {
  Folding folding(draft, last, taken);
  const TraceNode& node = folding.last();
  if (!is_plain(node) || node.num_outputs != 1 || !folding.find_product() || !folding.is_alone() ||
      !folding.may_run_last() || !folding.others_are_apart())
    return std::nullopt;
  return folding;
}

bool Folding::find_product() {
  if (taken().value == kAbsent || result().value == kAbsent) return false;
  const auto uses = draft_.uses_of(taken().value);
  const auto writer = std::find_if(uses.begin(), uses.end(), [](auto& u) { return u.writes; });
  if (writer == uses.end() || writer->node >= last_) return false;
  first_ = writer->node;
  const TraceNode& node = product();
  if (!is_plain(node) || writer->access != node.first_access + node.num_inputs) return false;
  const CallDesc& call = node.plan->call;
  return takes_activation(*call.op) && !call.attrs.has(kActivation) && !call.out &&
         node.plan->context == last().plan->context &&
         draft_.part_of(first_) == draft_.part_of(last_) && made().offset == taken().offset &&
         takes_all_of(last(), node.plan->outputs[0]);
}

// Whether nobody else sees what the product made.
bool Folding::is_alone() {
  const auto& values = draft_.trace.values;
  if (!values[result().value].inside || draft_.needed_outside(taken().value)) return false;
  const auto uses = draft_.uses_of(taken().value);
  const uint32_t read = last().first_access + taken_;
  return std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
    return use.node == first_ || (use.node == last_ && use.access == read);
  });
}

// Whether the product finds at the place of the other node what it reads, and does not write over
// it; and whether its other results, such as statistics, may be there no sooner.
bool Folding::may_run_last() const {
  const TraceNode& node = product();
  const uint32_t count = node.num_inputs + node.num_outputs;
  for (uint32_t k = 0; k < count; ++k) {
    if (k == node.num_inputs) continue;  // what is taken has no other users
    const Range mine = range_of(draft_, node, k);
    if (mine.value == kAbsent) continue;
    for (uint32_t i = first_ + 1; i <= last_; ++i) {
      if (draft_.removed(i)) continue;
      const TraceNode& other = draft_.trace.nodes[i];
      for (uint32_t j = k < node.num_inputs ? other.num_inputs : 0;
           j < other.num_inputs + other.num_outputs; ++j)
        if (range_of(draft_, other, j).overlaps(mine)) return false;
    }
  }
  return true;
}

// Whether the result lies apart from what is read besides: the product writes it before that is
// read.
bool Folding::others_are_apart() const {
  const Range written = range_of(draft_, last(), last().num_inputs);
  for (uint32_t k = 0; k < last().num_inputs; ++k)
    if (k != taken_ && range_of(draft_, last(), k).overlaps(written)) return false;
  return true;
}

// An overlay promises the bits that its device has for the pointwise operator, but knows nothing of
// what another overlay would make of it.
bool Folding::has_one_planner() const {
  const auto *of_product = product().plan->planner, *other = last().plan->planner;
  return other == of_product || other->info().kind != TN_PLUGIN_OVERLAY;
}

bool Folding::make(const std::function<void(CallDesc&)>& change, std::optional<uint32_t> added,
                   Notes& notes) {
  const std::string names = fmt::format("{} into {}", last().plan->name(), product().plan->name());
  CallDesc call = product().plan->call;
  change(call);
  call.num_scalars = product().num_scalars + last().num_scalars;
  std::string why;
  Ref<PlanEntry> plan = make_plan(std::move(call), why);
  notes.push_back(plan ? fmt::format("folded: {}", names)
                       : fmt::format("not folded: {}, because {}", names, why));
  if (!plan) return false;
  replace(std::move(plan), added);
  return true;
}

Ref<PlanEntry> Folding::make_plan(CallDesc call, std::string& why) const {
  const PlanEntry &first = *product().plan, &second = *last().plan;
  if (!has_one_planner()) {
    why = "several plugins compute them";
    return {};
  }
  auto plan = make_joint_plan(first, first.cost_ns + second.cost_ns, std::move(call), why);
  if (!plan || plan->outputs[0].strides == first.outputs[0].strides) return plan;
  why = "the result would lie in another way";
  return {};
}

void Folding::replace(Ref<PlanEntry> plan, std::optional<uint32_t> added) {
  const auto& wired = draft_.wiring.input_of_access;
  const auto take = [&](std::vector<Access>& into, Draft::Replacement& by, uint32_t access) {
    into.push_back(draft_.trace.accesses[access]);
    by.inputs_of.push_back(wired[access]);
  };
  Draft::Replacement by;
  by.plan = std::move(plan);
  for (uint32_t k = 0; k < product().num_inputs; ++k)
    take(by.inputs, by, product().first_access + k);
  if (added) take(by.inputs, by, last().first_access + *added);
  take(by.outputs, by, last().first_access + last().num_inputs);
  for (uint32_t k = 1; k < product().num_outputs; ++k)
    take(by.outputs, by, product().first_access + product().num_inputs + k);
  for (const TraceNode* node : {&product(), &last()}) {
    const Scalar* numbers = draft_.trace.scalars.data() + node->first_scalar;
    by.scalars.insert(by.scalars.end(), numbers, numbers + node->num_scalars);
  }
  by.outputs_hold_values = product().outputs_hold_values;
  const PathNode* path = product().path;
  draft_.remove(first_);
  draft_.replace(last_, std::move(by));
  draft_.trace.nodes[last_].path = path;
}

}  // namespace tenon::graph
