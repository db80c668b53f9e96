// The backward pass: nodes from the newest to the oldest, gradients summed on the way.
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <tenon/core/autograd/anomaly.h>
#include <tenon/core/autograd/autograd.h>
#include <tenon/core/autograd/find_nan.h>
#include <tenon/core/autograd/fitting.h>
#include <tenon/core/autograd/hook_list.h>
#include <tenon/core/autograd/leaf_gradient.h>
#include <tenon/core/autograd/node.h>
#include <tenon/core/autograd/pass_targets.h>
#include <tenon/core/base/error_path.h>
#include <tenon/core/base/fork.h>
#include <tenon/core/base/module_path.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/dispatch/op.h>
#include <tenon/core/dispatch/replica.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/runtime/observe.h>

namespace tenon {

namespace {

// Several threads may end a backward pass at the same leaf, which belongs to no graph alone.
// Gradients are added up while this lock is held, so its place in the order of locks is before
// everything that operators use. Never destroyed.
ForkMutex& grads_mutex = *new ForkMutex(ForkOrder::sessions);

// The lock is held by all callers of the functions below. `ended` is what the leaf had. It and
// `more` are to be destroyed when the lock is free, because that may run a deleter of the user.

void add_to_grad(TensorImpl& leaf, Tensor& more, Tensor& ended) {
  auto& t = impl_of(more);
  if (auto* recorder = recording::here()) [[unlikely]] {
    recorder->asks_gradient(leaf);
    recorder->replaces_gradient(leaf);
  }
  ended = leaf.autograd->grad;
  Tensor& grad = leaf.autograd->grad;
  // Users may change a gradient in place, so a leaf gets one of its own instead of a view or a
  // tensor that several leaves got.
  if (ended.defined())
    grad = add(ended, more);
  else if (lies_as_leaf(t, leaf) && t.refs == 1 && t.storage->refs == 1)
    grad = std::move(more);
  else
    grad = more.requires_grad() && !leaf.contiguous ? more.clone() : copy_for_leaf(more, leaf);
}

// Keeps the parts on their devices until a pass or `sum_held` sums them.
void hold(TensorImpl& leaf, Parts&& parts) {
  recording::refuse("gradients stay on the devices that computed them (no_sync)");
  LeafGradient all{Ref<TensorImpl>::share(&leaf), leaf.autograd->replicas->held};
  for (auto& [device, part] : parts) all.add_part(std::move(part));
  leaf.autograd->replicas->held.swap(all.parts);
}

void sum_held(TensorImpl& leaf, Tensor& ended) {
  if (!leaf.autograd->replicas || leaf.autograd->replicas->held.empty()) return;
  LeafGradient all{Ref<TensorImpl>::share(&leaf)};
  for (auto& [device, part] : leaf.autograd->replicas->held) all.add_part(part);
  Tensor total = all.total();  // a sum of the engine's own, with no deleter of a user
  add_to_grad(leaf, total, ended);
  leaf.autograd->replicas->held.clear();
}

void give_back(LeafGradient& leaf) noexcept {
  std::lock_guard lock(grads_mutex);
  auto& held = leaf.leaf->autograd->replicas->held;
  held.swap(leaf.held);
  try {
    held.insert(held.end(), leaf.held.begin(), leaf.held.end());
  } catch (const std::bad_alloc&) {
    // There is no memory to keep both: the parts that another thread has held meanwhile are lost.
  }
}

// One run of the engine.
class Backward {
 public:
  // `keep`: the graph stays. `retain`: the gradients that retain_grad asks for are kept.
  Backward(bool keep, bool retain) : keep_(keep), retain_(retain) {}
  // Gives parts that earlier passes held back to their leaves if this pass has not used them.
  ~Backward() {
    for (auto& leaf : leaves_)
      if (!leaf.held.empty()) give_back(leaf);
  }

  // Visits only nodes from which `targets` can be reached, and keeps only the gradients of targets.
  // Without this call, the gradients of all leaves are kept.
  void restrict_to(std::span<const Tensor> outputs, std::span<const Tensor> targets) {
    targets_.emplace(outputs, targets);
  }

  void seed(const Tensor& output, const Tensor& gradient) {
    const Edge edge = edge_of(output);
    if (edge.node && replicas_exist()) roots_.push_back(edge.node);
    send(edge, gradient);
  }

  void run() {
    const PassValues values;
    Buckets buckets(leaves_);
    // If the pass is recorded, operators have to make the sums (`total`), not the buckets.
    if (!grad_enabled()) buckets.look_ahead(roots_);
    roots_.clear();
    const auto find = [this](const TensorImpl* leaf) { return place_of(leaf); };
    while (!pending_.empty()) {
      visit_last();
      buckets.advance(pending_.empty() ? 0 : pending_.rbegin()->first, find);
    }
    buckets.finish();
    if (!grad_enabled()) reduce_parts(leaves_);
  }

  Tensor gradient_of(const Tensor& target) {
    Edge e = edge_of(target);
    if (e.leaf) {
      const size_t place = place_of(e.leaf.get());
      if (place == leaves_.size()) return Tensor();
      auto& leaf = leaves_[place];
      if (!leaf.hooked) {
        Tensor sum = run_leaf_hooks(*leaf.leaf, leaf.total());
        leaf.parts.emplace_back(sum.device(), sum);  // it may be asked for again
        leaf.hooked = true;
      }
      return leaf.parts.front().second;
    }
    auto it = captured_.find(e.node.get());
    return it == captured_.end() ? Tensor() : it->second[e.output];
  }

  // In the order in which gradients first reached the leaves: the same in every run.
  std::vector<LeafGradient>& leaves() { return leaves_; }

 private:
  struct Pending {
    Ref<Node> node;
    std::vector<Tensor> grads;
  };

  bool wanted(const Edge& e) const { return e && (!targets_ || targets_->lead_from(e)); }

  void run_hooks(const Node& node, std::span<Tensor> grads) {
    node.hooks.run(grads);
    if (!retain_) return;
    node.hooks.each_retained([&](uint32_t output, RetainedGrad& kept) {
      if (!grads[output].defined()) return;
      Tensor ended;  // destroyed when the lock is free: that may run a deleter of the user
      std::lock_guard lock(grads_mutex);
      ended = kept.grad;
      // Users may change it in place, so it is a tensor of its own.
      kept.grad = ended.defined() ? add(ended, grads[output]) : grads[output].clone();
    });
  }

  // Visits the newest node that waits: consumers come before what they consume.
  void visit_last() {
    const auto last = std::prev(pending_.end());
    Pending p = std::move(last->second);
    pending_.erase(last);
    // Rules and hooks run where the forward call ran: they may compute with a parameter alone,
    // whose replica there is then read, and their errors name the module.
    const Device device = device_of(p.grads);
    const DeviceGuard guard(device);
    std::optional<ContextScope> stream;
    DeviceContext* const ran = p.node->stream;
    if (ran || innermost_scope->streams) [[unlikely]]
      stream.emplace(ran && ran->device == device ? *ran : context_of(device));
    const ModulePath path(p.node->path);
    try {
      if (p.node->hooks.any()) run_hooks(*p.node, p.grads);
      visit(*p.node, p.grads);
    } catch (Error& error) {
      add_path(error);
      throw;
    }
    if (targets_ && targets_->contain(*p.node)) captured_[p.node.get()] = std::move(p.grads);
  }

  void visit(Node& node, std::span<const Tensor> grads) {
    if (targets_ && !targets_->lead_from(node)) return;
    const size_t n = node.edges.size();
    bool few[16];
    std::unique_ptr<bool[]> many;
    bool* const needed = n <= std::size(few) ? few : (many = std::make_unique<bool[]>(n)).get();
    for (size_t i = 0; i < n; ++i) needed[i] = wanted(node.edges[i]);
    observe::Gradient part(node.name());
    auto gradients = node.backward(grads, {needed, n});
    if (detects_anomaly()) require_no_nan(node, grads, gradients);
    for (size_t i = 0; i < n; ++i)
      if (needed[i] && gradients[i].defined()) send(node.edges[i], std::move(gradients[i]));
    if (!keep_) node.release_saved();
  }

  // All gradients that are there are on one device, which this returns.
  static Device device_of(std::span<const Tensor> grads) {
    return std::find_if(grads.begin(), grads.end(), [](auto& g) { return g.defined(); })->device();
  }

  // Returns the place of a leaf in `leaves_`, or their number if it is not there. A few leaves are
  // compared one by one, which takes less time than an index of them.
  size_t place_of(const TensorImpl* leaf) const {
    if (const auto it = leaf_index_.find(leaf); it != leaf_index_.end()) return it->second;
    size_t i = leaf_index_.size();
    while (i < leaves_.size() && leaves_[i].leaf.get() != leaf) ++i;
    return i;
  }

  // A hook has to see the sum of each pass, and a recorded sum belongs to its pass.
  void begin_shared(LeafGradient& gradient) const {
    const TensorImpl& leaf = *gradient.leaf;
    if (has_hooks(leaf)) return;
    ReplicaSet& replicas = *leaf.autograd->replicas;
    gradient.deferred = !grad_enabled() && replicas.gradient_sums().deferred;
    if (gradient.deferred) return;
    {
      std::lock_guard lock(grads_mutex);
      gradient.held.swap(replicas.held);
    }
    if (!gradient.held.empty()) recording::refuse("it sums gradients that no_sync() left");
    for (auto& [device, held] : gradient.held) gradient.add_part(held);
  }

  LeafGradient& gradient_for(const Ref<TensorImpl>& leaf) {
    constexpr size_t few = 8;
    const size_t place = place_of(leaf.get());
    if (place == leaves_.size()) {
      leaves_.push_back({leaf});
      if (leaf->autograd->replicas && retain_) [[unlikely]]
        begin_shared(leaves_.back());
      if (place >= few)
        for (size_t i = leaf_index_.size(); i <= place; ++i)
          leaf_index_.emplace(leaves_[i].leaf.get(), i);
    }
    return leaves_[place];
  }

  void send(const Edge& e, Tensor g) {
    if (!wanted(e)) return;
    if (e.leaf) {
      auto& leaf = gradient_for(e.leaf);
      return leaf.add_part(std::move(g));
    }
    auto& p = pending_[e.node->sequence];
    if (!p.node) {
      p.node = e.node;
      p.grads.resize(e.node->num_outputs);
    }
    p.grads[e.output] = add_up(p.grads[e.output], std::move(g));
  }

  const bool keep_, retain_;
  std::optional<PassTargets> targets_;
  std::vector<Ref<Node>> roots_;
  std::map<uint64_t, Pending> pending_;
  std::vector<LeafGradient> leaves_;
  std::unordered_map<const TensorImpl*, size_t> leaf_index_;  // of `leaves_`, once there are many
  std::unordered_map<Node*, std::vector<Tensor>> captured_;
};

// Returns the gradient to start from: the given one, or 1 for a single element.
Tensor start_gradient(const Tensor& output, const Tensor& given, const char* what) {
  checked_impl(output, what);
  if (!output.requires_grad())
    throw AutogradError(
        fmt::format("{}: the tensor of shape {} does not require a gradient: nothing it was made "
                    "from does, or it was made under no_grad",
                    what, output.shape()));
  if (!given.defined()) {
    if (output.numel() != 1)
      throw AutogradError(
          fmt::format("{}: a gradient is created implicitly for a single element only, but the "
                      "shape is {}; reduce it with sum() or mean(), or pass the gradient",
                      what, output.shape()));
    return full(output.shape(), 1, {.dtype = output.dtype(), .device = output.device()});
  }
  require_fitting(what, "the given gradient", given, output);
  return given;
}

}  // namespace

void Tensor::backward(const Tensor& gradient, BackwardOptions options) const {
  const AutocastOff off;
  GradMode mode(options.create_graph);
  Backward pass(options.retain_graph.value_or(options.create_graph), true);
  pass.seed(*this, start_gradient(*this, gradient, "backward"));
  pass.run();
  // All hooks run before the first gradient is added, so a pass that one of them ends can be
  // repeated.
  std::vector<Tensor> totals;
  for (auto& l : pass.leaves())
    totals.push_back(l.deferred ? l.local() : run_leaf_hooks(*l.leaf, l.total()));
  for (size_t i = 0; i < totals.size(); ++i) {
    LeafGradient& gradient = pass.leaves()[i];
    // One that was frozen after the forward call gets none.
    if (!gradient.leaf->autograd->requires_grad) continue;
    Tensor more = std::move(totals[i]), ended;  // destroyed when the lock is free
    std::lock_guard lock(grads_mutex);
    if (more.defined()) add_to_grad(*gradient.leaf, more, ended);
    if (gradient.deferred) hold(*gradient.leaf, std::move(gradient.parts));
    gradient.held.clear();
  }
}

std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                         std::span<const Tensor> grad_outputs, GradOptions options) {
  if (!grad_outputs.empty() && grad_outputs.size() != outputs.size())
    throw ValueError(
        fmt::format("grad: {} outputs, but {} grad_outputs", outputs.size(), grad_outputs.size()));
  for (auto& t : inputs)
    if (!t.requires_grad())
      throw AutogradError(
          fmt::format("grad: an input of shape {} does not require a gradient", t.shape()));
  const AutocastOff off;
  GradMode mode(options.create_graph);
  Backward pass(options.retain_graph.value_or(options.create_graph), false);
  pass.restrict_to(outputs, inputs);
  for (size_t i = 0; i < outputs.size(); ++i)
    pass.seed(
        outputs[i],
        start_gradient(outputs[i], grad_outputs.empty() ? Tensor() : grad_outputs[i], "grad"));
  pass.run();
  std::vector<Tensor> result;
  for (size_t i = 0; i < inputs.size(); ++i) {
    result.push_back(pass.gradient_of(inputs[i]));
    if (!result.back().defined() && !options.allow_unused)
      throw AutogradError(
          fmt::format("grad: input {} of shape {} was not used to compute the outputs; pass "
                      "allow_unused = true to get an undefined tensor for it",
                      i, inputs[i].shape()));
  }
  return result;
}

Tensor Tensor::grad() const {
  auto& t = checked_impl(*this, "grad");
  if (auto* recorder = recording::here()) [[unlikely]]
    recorder->asks_gradient(t);
  if (!t.autograd) return Tensor();
  Tensor ended;  // destroyed when the lock is free
  std::lock_guard lock(grads_mutex);
  if (t.autograd->retained) return t.autograd->retained->grad;
  sum_held(t, ended);
  return t.autograd->grad;
}

void Tensor::set_grad(const Tensor& g) {
  auto& t = checked_impl(*this, "set_grad");
  if (g.defined()) require_fitting("set_grad", "the gradient", g, *this);
  if (auto* recorder = recording::here()) [[unlikely]]
    recorder->replaces_gradient(t);
  if (!g.defined() && !t.autograd) return;
  auto& meta = t.meta();
  Tensor ended = g;  // what was there, destroyed when the lock is free
  std::lock_guard lock(grads_mutex);
  if (meta.replicas) meta.replicas->held.clear();
  std::swap(meta.retained ? meta.retained->grad : meta.grad, ended);
}

}  // namespace tenon
