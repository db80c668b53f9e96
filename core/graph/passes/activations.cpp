// Activations become part of the product or convolution whose result they take, which computes them
// while the result is in the cache. The node of both is where the activation was.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/error.h>
#include <tenon/core/graph/passes/passes.h>
#include <tenon/core/graph/passes/pointwise_layout.h>
#include <tenon/core/layout.h>
#include <tenon/core/ops/pointwise/activations.h>

namespace tenon::graph {

namespace {

// What one plan does, of tensors as they lie, with numbers that are always the same.
bool is_plain(const TraceNode& node) {
  return node.plan && node.plan->plan && !node.plan->make_contiguous && node.draw < 0 &&
         node.living.empty() && node.num_outputs == 1;
}

// Elements as the product writes them, each of which the activation replaces where it lies.
bool takes_all_of(const TraceNode& activation, const PlanOutput& product) {
  const auto layout = pointwise_layout(activation);
  const DType dtype = product.dtype;
  return layout && layout->strides.size() == 1 &&
         layout->strides[0] == Shape::row_major(layout->shape) &&
         layout->shape.numel() == product.numel &&
         (product.row_major || is_dense(product.shape, product.strides)) &&
         activation.plan->call.inputs[0]->dtype == dtype &&
         activation.plan->outputs[0].dtype == dtype;
}

class Folding {
 public:
  // Returns the folding of `last` if it is an activation of what a product or convolution makes.
  static std::optional<Folding> of(Draft& draft, uint32_t last) {
    const TraceNode& node = draft.trace.nodes[last];
    if (!is_plain(node) || node.num_inputs != 1 || !is_activation(*node.plan->call.op) ||
        !node.plan->call.attrs.all().empty())
      return std::nullopt;
    Folding folding(draft, last);
    if (!folding.find_product() || !folding.is_alone() || !folding.may_run_last())
      return std::nullopt;
    return folding;
  }

  // Puts one node in the place of both, or notes why not.
  void make(Notes& notes) {
    const std::string names =
        fmt::format("{} into {}", activation().plan->name(), product().plan->name());
    std::string why;
    Ref<PlanEntry> plan = make_plan(why);
    notes.push_back(plan ? fmt::format("folded: {}", names)
                         : fmt::format("not folded: {}, because {}", names, why));
    if (plan) replace(std::move(plan));
  }

 private:
  Folding(Draft& draft, uint32_t last) : draft_(draft), last_(last) {}

  const TraceNode& product() const { return draft_.trace.nodes[first_]; }
  const TraceNode& activation() const { return draft_.trace.nodes[last_]; }
  const Access& made() const { return draft_.outputs_of(product())[0]; }
  const Access& taken() const { return draft_.inputs_of(activation())[0]; }
  const Access& result() const { return draft_.outputs_of(activation())[0]; }

  bool find_product() {
    if (taken().value == kAbsent || result().value == kAbsent) return false;
    const auto uses = draft_.uses_of(taken().value);
    const auto writer = std::find_if(uses.begin(), uses.end(), [](auto& u) { return u.writes; });
    if (writer == uses.end() || writer->node >= last_) return false;
    first_ = writer->node;
    const TraceNode& node = product();
    if (!is_plain(node)) return false;
    const CallDesc& call = node.plan->call;
    return takes_activation(*call.op) && !call.attrs.has(kActivation) && !call.out &&
           node.plan->context == activation().plan->context &&
           draft_.part_of(first_) == draft_.part_of(last_) && made().offset == taken().offset &&
           takes_all_of(activation(), node.plan->outputs[0]);
  }

  // Whether nobody else sees what the product made.
  bool is_alone() {
    const auto& values = draft_.trace.values;
    if (!values[result().value].inside || draft_.needed_outside(taken().value)) return false;
    const auto uses = draft_.uses_of(taken().value);
    return std::all_of(uses.begin(), uses.end(), [this](const Use& use) {
      return use.node == first_ || (use.node == last_ && !use.writes);
    });
  }

  // Whether the product finds at the place of the activation what it reads, and does not write over
  // it.
  bool may_run_last() const {
    for (uint32_t k = 0; k < product().num_inputs; ++k) {
      const Range read = range_of(draft_, product(), k);
      if (read.value == kAbsent) continue;
      for (uint32_t i = first_ + 1; i <= last_; ++i) {
        if (draft_.removed(i)) continue;
        const TraceNode& node = draft_.trace.nodes[i];
        for (uint32_t out = 0; out < node.num_outputs; ++out)
          if (range_of(draft_, node, node.num_inputs + out).overlaps(read)) return false;
      }
    }
    return true;
  }

  // An overlay promises the bits that its device has for the activation, but knows nothing of what
  // another overlay would make of it.
  bool has_one_planner() const {
    const auto *of_product = product().plan->planner, *other = activation().plan->planner;
    return other == of_product || other->info().kind != TN_PLUGIN_OVERLAY;
  }

  Ref<PlanEntry> make_plan(std::string& why) const {
    const PlanEntry &first = *product().plan, &second = *activation().plan;
    if (!has_one_planner()) {
      why = "several plugins compute them";
      return {};
    }
    CallDesc call = first.call;
    call.attrs.set(kActivation, second.call.op->name);
    call.num_scalars = activation().num_scalars;
    const uint64_t cost = first.cost_ns + second.cost_ns;
    try {
      auto plan = plans_of(*first.context).make_apart(std::move(call));
      if (!plan->plan || plan->make_contiguous)
        why = "the plugin refuses it" + plan->refusals;
      else if (plan->planner != first.planner)
        why = fmt::format("{} computes the one, and {} would compute both", first.planner->name(),
                          plan->planner->name());
      else if (plan->outputs[0].strides != first.outputs[0].strides)
        why = "the result would lie in another way";
      else if (plan->cost_ns > cost)
        why = fmt::format("together they would take {} ns instead of {}", plan->cost_ns, cost);
      else
        return plan;
    } catch (const Error& e) {
      why = e.what();
    }
    return {};
  }

  void replace(Ref<PlanEntry> plan) {
    const auto& wired = draft_.wiring.input_of_access;
    Draft::Replacement by;
    by.plan = std::move(plan);
    const auto inputs = draft_.inputs_of(product());
    by.inputs.assign(inputs.begin(), inputs.end());
    by.outputs = {result()};
    for (uint32_t k = 0; k < product().num_inputs; ++k)
      by.inputs_of.push_back(wired[product().first_access + k]);
    by.inputs_of.push_back(wired[activation().first_access + activation().num_inputs]);
    const Scalar* numbers = draft_.trace.scalars.data() + activation().first_scalar;
    by.scalars.assign(numbers, numbers + activation().num_scalars);
    by.outputs_hold_values = product().outputs_hold_values;
    const PathNode* path = product().path;
    draft_.remove(first_);
    draft_.replace(last_, std::move(by));
    draft_.trace.nodes[last_].path = path;
  }

  Draft& draft_;
  uint32_t first_ = 0, last_;
};

}  // namespace

size_t fold_activations(Draft& draft, Notes& notes) {
  const auto count = static_cast<uint32_t>(draft.trace.nodes.size());
  for (uint32_t i = 0; i < count; ++i)
    if (auto folding = Folding::of(draft, i)) folding->make(notes);
  return draft.compact();
}

}  // namespace tenon::graph
