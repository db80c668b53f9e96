#include <algorithm>
#include <mutex>

#include <tenon/core/autograd/fitting.h>
#include <tenon/core/autograd/hook_list.h>
#include <tenon/core/autograd/node.h>
#include <tenon/core/base/fork.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

namespace {
// One lock for all lists: it is held for a moment, and never while a hook runs.
ForkMutex& hooks_mutex() {
  static constinit NeverDestroyed<ForkMutex, ForkOrder::tables> mutex;
  return mutex.get();
}
}  // namespace

HookHandle HookList::add(GradientHook hook) {
  auto kept = std::make_shared<const GradientHook>(std::move(hook));
  std::lock_guard lock(hooks_mutex());
  entries_.push_back({next_id_, std::move(kept)});
  return {weak_from_this(), next_id_++};
}

void HookList::remove(uint64_t id) {
  std::shared_ptr<const GradientHook> ended;  // destroyed when the lock is free
  std::lock_guard lock(hooks_mutex());
  const auto it =
      std::find_if(entries_.begin(), entries_.end(), [&](auto& e) { return e.id == id; });
  if (it == entries_.end()) return;
  ended = std::move(it->hook);
  entries_.erase(it);
}

Tensor HookList::run(Tensor gradient) const {
  std::vector<Entry> now;
  {
    std::lock_guard lock(hooks_mutex());
    now = entries_;
  }
  for (auto& entry : now)
    if (Tensor other = (*entry.hook)(gradient); other.defined()) {
      require_fitting("register_hook", "what the hook returned", other, gradient, "the gradient");
      gradient = std::move(other);
    }
  return gradient;
}

bool HookList::empty() const {
  std::lock_guard lock(hooks_mutex());
  return entries_.empty();
}

void HookHandle::remove() {
  if (const auto list = list_.lock()) list->remove(id_);
  list_.reset();
}

NodeHooks::~NodeHooks() { delete slots_.load(std::memory_order_acquire); }

// The lock is held.
NodeHooks::Slots& NodeHooks::slots() {
  auto* slots = slots_.load(std::memory_order_relaxed);
  if (!slots) slots_.store(slots = new Slots, std::memory_order_release);
  return *slots;
}

std::shared_ptr<HookList> NodeHooks::list_of(uint32_t output) {
  std::lock_guard lock(hooks_mutex());
  auto& lists = slots().lists;
  for (auto& [of, list] : lists)
    if (of == output) return list;
  return lists.emplace_back(output, std::make_shared<HookList>()).second;
}

void NodeHooks::retain(uint32_t output, std::shared_ptr<RetainedGrad> where) {
  std::lock_guard lock(hooks_mutex());
  slots().retained.emplace_back(output, std::move(where));
}

void NodeHooks::run(std::span<Tensor> gradients) const {
  decltype(Slots::lists) lists;
  {
    std::lock_guard lock(hooks_mutex());
    lists = slots_.load(std::memory_order_relaxed)->lists;
  }
  for (auto& [output, list] : lists)
    if (gradients[output].defined()) gradients[output] = list->run(gradients[output]);
}

std::vector<std::pair<uint32_t, std::shared_ptr<RetainedGrad>>> NodeHooks::retained() const {
  std::lock_guard lock(hooks_mutex());
  return slots_.load(std::memory_order_relaxed)->retained;
}

namespace {
std::shared_ptr<HookList> hooks_of(const TensorImpl& leaf) {
  std::lock_guard lock(hooks_mutex());
  return leaf.autograd->hooks;
}
}  // namespace

bool has_hooks(const TensorImpl& leaf) {
  const auto hooks = hooks_of(leaf);
  return hooks && !hooks->empty();
}

Tensor run_leaf_hooks(const TensorImpl& leaf, Tensor gradient) {
  const auto hooks = hooks_of(leaf);
  return hooks ? hooks->run(std::move(gradient)) : gradient;
}

HookHandle register_hook(const Tensor& tensor, GradientHook hook) {
  auto& t = checked_impl(tensor, "register_hook");
  if (!hook) throw ValueError("register_hook: the hook is an empty function");
  if (!tensor.requires_grad())
    throw AutogradError(
        fmt::format("register_hook: the tensor of shape {} requires no gradient, so that no hook "
                    "would ever be called",
                    t.shape));
  if (auto& node = t.autograd->node)
    return node->hooks.list_of(t.autograd->output)->add(std::move(hook));
  std::shared_ptr<HookList> list;
  {
    std::lock_guard lock(hooks_mutex());
    if (!t.autograd->hooks) t.autograd->hooks = std::make_shared<HookList>();
    list = t.autograd->hooks;
  }
  return list->add(std::move(hook));
}

void Tensor::retain_grad() const {
  auto& t = checked_impl(*this, "retain_grad");
  if (!requires_grad())
    throw AutogradError(fmt::format(
        "retain_grad: the tensor of shape {} requires no gradient, so that it never has one",
        t.shape));
  if (is_leaf() || t.autograd->retained) return;
  auto where = std::make_shared<RetainedGrad>();
  t.autograd->node->hooks.retain(t.autograd->output, where);
  t.autograd->retained = std::move(where);
}

}  // namespace tenon
