#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

#include <tenon/core/autograd/lanes.h>
#include <tenon/core/autograd/node.h>
#include <tenon/core/autograd/recomputation.h>
#include <tenon/core/base/fork.h>
#include <tenon/core/base/per_thread.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/dispatch/replica.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/runtime/context.h>

namespace tenon {

namespace {
// A chain of a million operators must not end in a million nested destructors, so nodes are
// destroyed one after the other. The nodes themselves form the list of those that wait, because
// destroying must not need memory.
thread_local Node** ending TENON_FAST_TLS = nullptr;

// Nodes share a few locks: a lock for each node would be too many to hold during a fork, and two
// threads rarely need one at the same time.
struct alignas(64) NodeLock {
  ForkSpinLock lock{ForkOrder::tables};
};
// Never destroyed, because graphs may be destroyed with static objects.
auto& node_locks = *new std::array<NodeLock, 16>;

ForkSpinLock& lock_of(const Node& node) {
  return node_locks[node.sequence % node_locks.size()].lock;
}
}  // namespace

void retain(Node* n) { n->refs.fetch_add(1, std::memory_order_relaxed); }

void release(Node* n) {
  if (n->refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (ending) {
    n->next_to_end = *ending;
    *ending = n;
    return;
  }
  Node* list = n;
  ending = &list;
  while (list) {
    Node* last = std::exchange(list, list->next_to_end);
    delete last;
  }
  ending = nullptr;
}

Edge edge_of(const Tensor& tensor) {
  auto* t = tensor.impl().get();
  if (!t || !t->autograd || !t->autograd->requires_grad) return {};
  if (t->autograd->node) return {t->autograd->node, t->autograd->output, nullptr};
  return {nullptr, 0, tensor.impl()};
}

Saved save_value(Node& node, const Tensor& t, uint32_t index, bool is_output) {
  uint64_t number = 0;
  if (auto recomputation = Recomputation::take(t, number)) {
    node.recomputation = std::move(recomputation);
    return {Tensor(), number, index};
  }
  if (!is_output) {
    const Tensor replica = changed_replica(t);
    if (!replica.defined()) return {t, t.version(), index};
    // The call used values of a replica, which has no history. Gradients of higher order need the
    // parameter's history, and its values are others: a version that never fits makes them an
    // error.
    if (t.requires_grad()) return {t, t.version() - 1, index};
    return {replica, replica.version(), index};
  }
  return {t.detach(), t.version(), index};
}

namespace {
void add_input(Node& node, const Tensor* t) {
  const size_t i = node.edges.size();
  if (t && i < 64 && t->suggest_memory_format() != contiguous_format)
    node.inputs_with_channels_last |= uint64_t{1} << i;
  auto& edge = node.edges.emplace_back(t ? edge_of(*t) : Edge{});
  // A node that another lane or thread has recorded may have a higher number.
  if (edge.node && edge.node->sequence >= node.sequence) [[unlikely]]
    node.sequence = next_node_number(edge.node->sequence);
  node.input_shapes.push_back(t ? t->shape() : Shape{});
  node.input_dtypes.push_back(t ? t->dtype() : DType::f32);
}

// The rules of a node run where its forward call ran, which is where its results are: a copy comes
// from another device.
void note_stream(Node& node, const Tensor& result) {
  if (!innermost_scope || !innermost_scope->streams || !result.defined()) [[likely]]
    return;
  DeviceContext& context = working_context(result.device());
  if (!node.stream && &context != &context.main) node.stream = &context;
}

Ref<Node> numbered_node(size_t num_inputs, size_t num_outputs) {
  auto node = Ref<Node>::adopt(new Node);
  node->sequence = next_node_number(0);
  node->num_outputs = static_cast<uint32_t>(num_outputs);
  node->path = current_path();
  node->edges.reserve(num_inputs);
  node->input_shapes.reserve(num_inputs);
  node->input_dtypes.reserve(num_inputs);
  return node;
}
}  // namespace

void record_output(const Ref<Node>& node, const Tensor& output, uint32_t index) {
  auto& meta = impl_of(output).meta();
  meta.requires_grad = true;
  meta.node = node;
  meta.output = index;
}

Ref<Node> new_node(std::unique_ptr<NodeRule> rule, std::span<const Tensor> inputs,
                   std::span<Tensor* const> results) {
  auto node = numbered_node(inputs.size(), results.size());
  node->rule = std::move(rule);
  for (auto& t : inputs) add_input(*node, t.defined() ? &t : nullptr);
  for (auto* result : results) note_stream(*node, *result);
  return node;
}

void record(const Call& call, std::span<const Tensor> outputs) {
  const Op& op = call.op;
  auto node = numbered_node(call.inputs.size(), outputs.size());
  node->op = &op;
  for (auto& output : outputs) note_stream(*node, output);
  if (!call.attrs.all().empty()) node->attrs = std::make_unique<Attrs>(call.attrs);
  node->scalars.assign(call.scalars.begin(), call.scalars.end());
  for (uint32_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor* t = call.inputs[i];
    add_input(*node, t);
    if (t && i < 32 && (op.saves_inputs >> i & 1))
      node->inputs.push_back(save_value(*node, *t, i, false));
  }
  for (uint32_t i = 0; i < outputs.size() && i < 32; ++i) {
    if (!outputs[i].defined()) continue;
    if (op.saves_outputs >> i & 1) node->outputs.push_back(save_value(*node, outputs[i], i, true));
    if ((op.differentiable >> i & 1) && is_floating_point(outputs[i].dtype()))
      record_output(node, outputs[i], i);
  }
  node->saves = !node->inputs.empty() || !node->outputs.empty();
  if (auto* recorder = recording::here()) [[unlikely]]
    for (auto& output : outputs)  // statistics that change in place get no history
      for (auto* t : call.inputs)
        if (t && output.is_same(*t) && impl_of(output).autograd &&
            impl_of(output).autograd->node == node)
          recorder->gets_history(impl_of(output));
}

namespace {
thread_local PassValues* running TENON_FAST_TLS = nullptr;
}  // namespace

PassValues::PassValues() : before_(std::exchange(running, this)) {}
PassValues::~PassValues() { running = before_; }

void PassValues::leave(const void* key, std::vector<Tensor> tensors) {
  running->left_[key] = std::move(tensors);
}

std::vector<Tensor> PassValues::take(const void* key) {
  const auto it = running->left_.find(key);
  if (it == running->left_.end()) return {};
  auto tensors = std::move(it->second);
  running->left_.erase(it);
  return tensors;
}

Tensor Node::unpack(const Saved& saved, bool is_output) const {
  Tensor value = saved.value;
  if (!value.defined())
    value = recomputation->value(saved.version);
  else if (value.version() != saved.version)
    throw AutogradError(
        fmt::format("{}: {} {} of shape {} is needed to compute the gradient but has been changed "
                    "in place (version {}, expected {}); change a clone() of it, or change it "
                    "after backward(){}",
                    name(),
                    is_output ? "output"
                    : rule    ? "saved tensor"
                              : "input",
                    saved.index, value.shape(), value.version(), saved.version, path_suffix()));
  if (!is_output || !grad_enabled()) return value;
  // The value gets its history back, so that the gradient of this gradient can be taken.
  value = value.detach();
  record_output(Ref<Node>::share(const_cast<Node*>(this)), value, saved.index);
  return value;
}

// A lock of this node is held.
void Node::refuse_released() const {
  if (released)
    throw AutogradError(
        fmt::format("backward through {} for a second time: the first backward pass freed what "
                    "it needs; pass retain_graph = true to the first one{}",
                    name(), path_suffix()));
}

std::vector<Tensor> Node::backward(std::span<const Tensor> grads,
                                   std::span<const bool> needed) const {
  // Rules read only what their operator says that it saves.
  std::vector<Tensor> in(rule               ? rule->num_saved
                         : op->saves_inputs ? edges.size()
                                            : 0),
      out(rule || op->saves_outputs ? num_outputs : 0), gradients(edges.size());
  if (recomputation) {
    {
      std::lock_guard guard(lock_of(*this));
      refuse_released();
    }
    recomputation->prepare();
  }
  if (saves) {
    std::lock_guard guard(lock_of(*this));
    refuse_released();
    const bool as_they_are = rule && rule->checks_versions;
    for (auto& s : inputs) in[s.index] = as_they_are ? s.value : unpack(s, false);
    for (auto& s : outputs) out[s.index] = unpack(s, true);
  }
  if (rule) {
    gradients = rule->backward(grads, in, out, needed);
  } else {
    GradContext context{
        *op,          attrs ? *attrs : no_attrs, scalars, grads, in, out, needed, input_shapes,
        input_dtypes, inputs_with_channels_last};
    op->gradient(context, gradients);
  }
  // Statistics of half types are f32, and so is what is composed with them.
  for (size_t i = 0; i < gradients.size(); ++i)
    if (gradients[i].defined() && gradients[i].dtype() != input_dtypes[i])
      gradients[i] = gradients[i].to(input_dtypes[i]);
  return gradients;
}

void Node::release_saved() {
  if (!saves) return;
  std::vector<Saved> ended[2];  // destroyed after the lock is free
  {
    std::lock_guard guard(lock_of(*this));
    ended[0].swap(inputs);
    ended[1].swap(outputs);
    released = released || !ended[0].empty() || !ended[1].empty();
  }
  if (!recomputation) return;
  for (auto& values : ended)
    for (auto& s : values)
      if (!s.value.defined()) recomputation->drop(s.version);
}

namespace {

// The newest node that a backward pass has gone through, which is the first one at which another
// pass ends; null if there is none.
const Node* newest_spent(const Tensor& tensor) {
  const Edge edge = edge_of(tensor);
  std::vector<const Node*> rest;
  std::unordered_set<const Node*> seen;
  const Node* newest = nullptr;
  if (edge.node) rest.push_back(edge.node.get());
  while (!rest.empty()) {
    const Node* const node = rest.back();
    rest.pop_back();
    if (!seen.insert(node).second) continue;
    {
      std::lock_guard guard(lock_of(*node));
      if (node->released) {
        if (!newest || newest->sequence < node->sequence) newest = node;
        continue;
      }
    }
    for (auto& e : node->edges)
      if (e.node) rest.push_back(e.node.get());
  }
  return newest;
}

class SpentRule final : public NodeRule {
 public:
  using NodeRule::NodeRule;
  // Never called: the node says that it is released.
  std::vector<Tensor> backward(std::span<const Tensor>, std::span<const Tensor>,
                               std::span<const Tensor>, std::span<const bool>) const override {
    return {};
  }
};

}  // namespace

bool history_is_spent(const Tensor& tensor) { return newest_spent(tensor) != nullptr; }

Ref<Node> spent_history_like(const Tensor& tensor) {
  const Node* const like = newest_spent(tensor);
  if (!like) return {};
  auto node = numbered_node(0, edge_of(tensor).node->num_outputs);
  node->rule = std::make_shared<SpentRule>(like->name());
  node->path = like->path;
  node->saves = node->released = node->stands_in = true;
  return node;
}

}  // namespace tenon
