#include <algorithm>
#include <mutex>
#include <sstream>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/autograd/compiled.h>
#include <tenon/core/autograd/lanes.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/error.h>
#include <tenon/core/grad_mode.h>

namespace tenon {

namespace {

// The gradient of one replay. What it saves are the values of that call.
class CompiledRule final : public NodeRule {
 public:
  explicit CompiledRule(std::shared_ptr<CompiledHistory> history)
      : NodeRule("a compiled function"), history_(std::move(history)) {
    checks_versions = true;
  }
  ~CompiledRule() override {
    for (TensorImpl* leaf : leaves_) leaf->held_by_programs.fetch_sub(1, std::memory_order_relaxed);
  }

  // Counts the edges of the node to leaves of the function as handles of a program: results that
  // live on do not keep the function from noticing that it has a leaf no more. The history has
  // these leaves, too, so they are known as tensors of programs all the time.
  void count_leaves(const Node& node, std::span<const GraphCopy::Target> targets) {
    leaves_.reserve(targets.size());
    for (size_t i = 0; i < targets.size(); ++i) {
      TensorImpl* const leaf = targets[i].leaf.get();
      if (!leaf || node.edges[i].leaf.get() != leaf) continue;
      leaf->held_by_programs.fetch_add(1, std::memory_order_relaxed);
      leaves_.push_back(leaf);
    }
  }

  void save(Node& node, std::vector<Tensor> values) {
    for (auto& value : values) {
      versions_.push_back(value.version());
      node.inputs.push_back(
          {std::move(value), versions_.back(), static_cast<uint32_t>(versions_.size()) - 1});
    }
    num_saved = versions_.size();
    node.saves = num_saved > 0;
  }

  std::vector<Tensor> backward(std::span<const Tensor> grads, std::span<const Tensor> saved,
                               std::span<const Tensor>,
                               std::span<const bool> needed) const override {
    if (grad_enabled())
      throw AutogradError(
          "a compiled function has no gradients of higher order: create_graph = true asks for "
          "them; call the function that was compiled, or the module itself, for these");
    return history_->backward(grads, saved, versions_, needed);
  }

 private:
  const std::shared_ptr<CompiledHistory> history_;
  std::vector<uint64_t> versions_;
  std::vector<TensorImpl*> leaves_;  // that are counted
};

uint64_t byte_offset(const TensorImpl& t) {
  return static_cast<uint64_t>(t.offset) * size_of(t.dtype);
}

Edge edge_of_argument(const Tensor* argument) {
  return argument->defined() ? edge_of(*argument) : Edge();
}

std::vector<GraphCopy::Argument> as_they_begin(std::span<const Tensor* const> arguments) {
  std::vector<GraphCopy::Argument> all;
  for (auto* argument : arguments) {
    auto& a = all.emplace_back();
    if (!argument->defined()) continue;
    a = {edge_of(*argument), argument->dtype(), argument->device(), argument->shape()};
  }
  return all;
}

// Returns for each argument the first with the same edge.
std::vector<size_t> first_like(std::span<const Edge> edges) {
  std::vector<size_t> first;
  for (size_t i = 0; i < edges.size(); ++i) {
    first.push_back(i);
    for (size_t k = 0; edges[i] && first[i] == i && k < i; ++k)
      if (edges[k] == edges[i]) first[i] = k;
  }
  return first;
}

}  // namespace

// ---- recording

CompiledHistory::CompiledHistory(std::span<const Tensor* const> arguments,
                                 const CompileOptions& options)
    : copy_(next_node_number(0), as_they_begin(arguments)),
      options_{.max_programs = std::max(CompileOptions().max_programs, options.max_programs),
               .passes = options.passes,
               .measure = options.measure},
      arguments_(arguments.begin(), arguments.end()),
      pinned_(arguments.size()) {
  std::vector<Edge> edges;
  for (auto* argument : arguments) {
    edges.push_back(edge_of_argument(argument));
    leaves_.push_back(edges.back().leaf);
  }
  first_like_ = first_like(edges);
}

bool CompiledHistory::look(std::span<const Tensor> results) {
  for (uint32_t i = 0; i < results.size(); ++i) {
    const Tensor& result = results[i];
    const auto is_it = [&](const Tensor* argument) { return argument->is_same(result); };
    if (!result.defined() || std::any_of(arguments_.begin(), arguments_.end(), is_it)) continue;
    const Edge edge = edge_of(result);
    if (!edge.node || copy_.is_older(*edge.node) || history_is_spent(result)) continue;
    copy_.add_root(result, i);
    results_.insert(result.impl().get());
  }
  if (results_.empty()) return false;
  if (const char* why = copy_.finish()) recording::refuse(why);
  for (auto& held : copy_.kept_tensors()) held_.push_back({held.tensor, held.handles});
  return true;
}

void CompiledHistory::settle(graph::Trace& trace) {
  if (trace.refusal.empty()) {
    find_values();
    num_results_ = trace.num_results();
    for (auto& target : copy_.targets())
      for (auto& value : trace.values)
        if (target.leaf && value.inside && value.id == target.leaf->storage.get())
          trace.refusal = "a leaf that is made inside requires a gradient";
  }
  held_.clear();
  results_.clear();
  arguments_.clear();
}

void CompiledHistory::find_values() {
  for (auto& held : held_) {
    const TensorImpl& t = *held.tensor;
    Value& value = values_.emplace_back();
    value = {held.argument, t.dtype, t.shape, t.strides, 0};
    if (held.argument < 0) continue;
    const Tensor& argument = *arguments_[static_cast<size_t>(held.argument)];
    value.offset = byte_offset(t) - byte_offset(impl_of(argument));
  }
}

graph::Match CompiledHistory::compare(graph::History& later) const {
  auto& now = static_cast<CompiledHistory&>(later);
  graph::Match found;
  auto difference = copy_.compare(now.copy_);
  found.difference = std::move(difference.text);
  found.number_differs = difference.by_value;
  const auto same = [](const Value& a, const Value& b) {
    return a.argument == b.argument && a.dtype == b.dtype && a.shape == b.shape &&
           a.strides == b.strides && a.offset == b.offset;
  };
  if (found.difference.empty() &&
      (first_like_ != now.first_like_ ||
       !std::equal(values_.begin(), values_.end(), now.values_.begin(), now.values_.end(), same)))
    found.difference = "gradients need other tensors than before";
  for (size_t i = 0; i < pinned_.size(); ++i) {
    if (pinned_[i] && pinned_[i] != now.leaves_[i] && found.difference.empty())
      found.difference = "an argument is another leaf than before";
    const bool stayed = i < leaves_.size() && leaves_[i] == now.leaves_[i];
    now.pinned_[i] = stayed ? leaves_[i] : graph::ProgramRef<TensorImpl>();
  }
  return found;
}

// ---- replays

const char* CompiledHistory::obstacle(std::span<const Tensor* const> arguments) const {
  for (auto& target : copy_.targets())
    if (target.leaf && graph::is_let_go(*target.leaf))
      return "a leaf that it uses does not exist any more";
  const auto wants = [](const Tensor* t) { return t->defined() && t->requires_grad(); };
  if (std::none_of(arguments.begin(), arguments.end(), wants)) return nullptr;
  std::vector<Edge> edges;
  for (auto* argument : arguments) edges.push_back(edge_of_argument(argument));
  if (first_like(edges) != first_like_)
    return "two arguments are now one tensor and were two before, or are now two and were one";
  for (size_t i = 0; i < edges.size(); ++i) {
    if (pinned_[i] && edges[i].leaf != pinned_[i].ref())
      return "an argument is another leaf than before";
    for (auto& target : copy_.targets())
      if (target.leaf && target.leaf.ref() == edges[i].leaf)
        return "an argument is a parameter that the function also uses in another way";
  }
  return nullptr;
}

Tensor CompiledHistory::value_of(const Value& value, std::span<const Tensor* const> arguments,
                                 Tensor*& next) const {
  if (value.argument < 0) return (next++)->detach();
  const TensorImpl& t = impl_of(*arguments[static_cast<size_t>(value.argument)]);
  const auto offset = static_cast<int64_t>((byte_offset(t) + value.offset) / size_of(value.dtype));
  return Tensor(Ref<TensorImpl>::adopt(
      new TensorImpl(value.dtype, t.device, value.shape, value.strides, offset, t.storage)));
}

void CompiledHistory::give(std::span<const Tensor* const> arguments, std::vector<Tensor>& results) {
  leaves_.clear();
  std::vector<Tensor> values, inputs;
  std::vector<Tensor*> outputs;
  Tensor* next = results.data() + num_results_;
  for (auto& value : values_) values.push_back(value_of(value, arguments, next));
  results.resize(num_results_);
  for (auto& target : copy_.targets())
    inputs.push_back(target.leaf ? Tensor(target.leaf.ref())
                                 : *arguments[static_cast<size_t>(target.argument)]);
  auto made = std::make_unique<CompiledRule>(shared_from_this());
  CompiledRule& rule = *made;
  for (auto& root : copy_.roots()) outputs.push_back(&results[root.result]);
  const auto node = new_node(std::move(made), inputs, outputs);
  rule.count_leaves(*node, copy_.targets());
  rule.save(*node, std::move(values));
  for (uint32_t i = 0; i < outputs.size(); ++i) record_output(node, *outputs[i], i);
}

// ---- backward

detail::CompiledCalls* CompiledHistory::calls_for(std::span<const bool> needed) {
  constexpr size_t kMax = 8;
  auto& passes = passes_->all;
  std::lock_guard lock(passes_->mutex);
  for (auto& pass : passes)
    if (std::equal(needed.begin(), needed.end(), pass.needed.begin(), pass.needed.end()))
      return &pass.calls;
  if (passes.size() == kMax) return nullptr;
  auto& pass = passes.emplace_back(std::vector<bool>(needed.begin(), needed.end()),
                                   detail::CompiledCalls(options_));
  return &pass.calls;
}

std::vector<Tensor> CompiledHistory::backward(std::span<const Tensor> grads,
                                              std::span<const Tensor> values,
                                              std::span<const uint64_t> versions,
                                              std::span<const bool> needed) {
  auto run = [&](std::vector<Tensor>& gradients) {
    gradients = copy_.backward(grads, values, versions, needed);
  };
  bool changed = false;
  std::vector<const Tensor*> arguments;
  for (auto& gradient : grads) arguments.push_back(&gradient);
  for (size_t i = 0; i < values.size(); ++i) {
    changed |= values[i].version() != versions[i];
    arguments.push_back(&values[i]);
  }
  std::vector<Tensor> gradients;
  // If one of the rules needs what was changed, that is an error, which the engine throws.
  detail::CompiledCalls* const calls = changed ? nullptr : calls_for(needed);
  if (!calls) {
    run(gradients);
  } else {
    const detail::CompiledBody body{&run, [](void* self, std::vector<Tensor>& results) {
                                      (*static_cast<decltype(run)*>(self))(results);
                                    }};
    calls->call(arguments, body, gradients, sizes_);
  }
  std::vector<Tensor> all(needed.size());
  for (size_t i = 0, next = 0; i < needed.size(); ++i)
    if (needed[i]) all[i] = std::move(gradients[next++]);
  return all;
}

std::string CompiledHistory::explain() const {
  return fmt::format("      a history of {} operators, with {} tensors for backward passes\n",
                     copy_.size(), values_.size());
}

std::string CompiledHistory::explain_passes() const {
  std::string text;
  // Passes are never removed, so pointers stay valid. Explaining one waits while it runs, so the
  // list is copied and its lock released first.
  std::vector<const Pass*> all;
  {
    std::lock_guard lock(passes_->mutex);
    for (auto& pass : passes_->all) all.push_back(&pass);
  }
  for (const Pass* pass : all) {
    std::istringstream lines("its backward pass is " + pass->calls.explain());
    for (std::string line; std::getline(lines, line);) text += "      " + line + "\n";
  }
  return text;
}

// ---- calls of other sizes

std::string CompiledHistory::compare_but_sizes(const History& later) const {
  auto& now = static_cast<const CompiledHistory&>(later);
  if (auto difference = copy_.compare_but_sizes(now.copy_); !difference.text.empty())
    return difference.text;
  const auto same = [](const Value& a, const Value& b) {
    return a.argument == b.argument && a.dtype == b.dtype && a.shape.size() == b.shape.size();
  };
  if (first_like_ != now.first_like_ || num_results_ != now.num_results_ ||
      !std::equal(values_.begin(), values_.end(), now.values_.begin(), now.values_.end(), same))
    return "gradients need other tensors than before";
  for (size_t i = 0; i < pinned_.size(); ++i)
    if (pinned_[i] && pinned_[i] != now.leaves_[i])
      return "an argument is another leaf than before";
  return "";
}

void CompiledHistory::note_arguments(const History& second) {
  auto& now = static_cast<const CompiledHistory&>(second);
  for (size_t i = 0; i < pinned_.size(); ++i)
    pinned_[i] = leaves_[i] == now.leaves_[i] ? leaves_[i] : graph::ProgramRef<TensorImpl>();
  leaves_.clear();
}

void CompiledHistory::visit(graph::NumberVisitor& visitor) {
  copy_.visit(visitor);
  for (auto& value : values_) {
    visitor.shape(value.shape);
    visitor.list(value.strides);
    visitor.bytes(value.offset);
  }
}

std::shared_ptr<graph::History> CompiledHistory::copy() const {
  auto made = std::make_shared<CompiledHistory>(*this);
  made->copy_ = copy_.apart();
  return made;
}

const char* CompiledHistory::fault(std::span<const Tensor* const> arguments,
                                   const graph::Trace& trace) const {
  for (auto& value : values_) {
    if (value.argument < 0) continue;
    const TensorImpl& t = impl_of(*arguments[static_cast<size_t>(value.argument)]);
    const uint64_t all = graph::extent_in_memory(t.dtype, t.shape, t.strides),
                   bytes = graph::extent_in_memory(value.dtype, value.shape, value.strides);
    if (!graph::lies_inside(value.offset, bytes, all))
      return "a gradient reads beyond the memory of an argument";
  }
  for (auto& target : copy_.targets())
    if (target.argument >= 0 &&
        target.shape != arguments[static_cast<size_t>(target.argument)]->shape())
      return "the gradient of an argument comes out with another shape";
  for (auto& root : copy_.roots()) {
    const int32_t kept = trace.results[root.result].kept;
    if (kept < 0 || trace.kept[static_cast<size_t>(kept)].shape != root.shape)
      return "the gradient of a result comes out with another shape";
  }
  return nullptr;
}

void CompiledHistory::join(const History& other, const graph::Sizes& sizes) {
  passes_ = static_cast<const CompiledHistory&>(other).passes_;
  sizes_ = sizes;
}

bool CompiledHistory::has_passes_of(const History& other) const {
  return passes_ == static_cast<const CompiledHistory&>(other).passes_;
}

std::shared_ptr<graph::History> graph::begin_history(std::span<const Tensor* const> arguments,
                                                     const CompileOptions& options) {
  return std::make_shared<CompiledHistory>(arguments, options);
}

}  // namespace tenon
