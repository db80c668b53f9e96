#include <algorithm>
#include <map>
#include <mutex>

#include <tenon/core/autograd/function.h>
#include <tenon/core/autograd/node.h>
#include <tenon/core/base/fork.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/modules/hooks.h>

namespace tenon::nn {

constinit std::atomic<uint32_t> detail::hooks_registered{0};

using ModuleKey = std::pair<const void*, const ModuleType*>;

namespace {

struct HookTable {
  ForkMutex mutex{ForkOrder::tables};
  std::map<ModuleKey, std::shared_ptr<ModuleHooks>> all;
};
HookTable& hook_table() {
  static constinit NeverDestroyed<HookTable> table;
  return table.get();
}

}  // namespace

// The hooks of one module. The lock of the table protects them.
class ModuleHooks {
 public:
  template <class Hook>
  struct HookEntry {
    uint64_t id;
    std::shared_ptr<const Hook> hook;
  };

  explicit ModuleHooks(ModuleKey key) : key_(key) {}

  template <class Hook>
  static ModuleHook add(const char* what, ModuleRef module,
                        std::vector<HookEntry<Hook>> ModuleHooks::*list, Hook hook) {
    if (!module.self || !hook)
      throw ValueError(fmt::format(
          "{}: {}", what,
          module.self ? "the hook is an empty function" : "the reference leads to no module"));
    auto kept = std::make_shared<const Hook>(std::move(hook));
    HookTable& table = hook_table();
    std::lock_guard lock(table.mutex);
    const ModuleKey key(module.self, module.type);
    auto& hooks = table.all[key];
    if (!hooks) hooks = std::make_shared<ModuleHooks>(key);
    ((*hooks).*list).push_back({hooks->next_id_, std::move(kept)});
    detail::hooks_registered.fetch_add(1, std::memory_order_relaxed);
    recording::changed();
    return {hooks, hooks->next_id_++};
  }

  static std::shared_ptr<ModuleHooks> find(ModuleRef module) {
    HookTable& table = hook_table();
    std::lock_guard lock(table.mutex);
    const auto it = table.all.find({module.self, module.type});
    return it == table.all.end() ? nullptr : it->second;
  }

  void remove(uint64_t id) {
    std::shared_ptr<const void> ended;  // destroyed when the lock is free
    HookTable& table = hook_table();
    std::lock_guard lock(table.mutex);
    auto remove_from = [&](auto& list) {
      const auto it = std::find_if(list.begin(), list.end(), [&](auto& e) { return e.id == id; });
      if (it == list.end()) return;
      ended = std::move(it->hook);
      list.erase(it);
    };
    remove_from(before_);
    remove_from(after_);
    remove_from(backward_);
    detail::hooks_registered.fetch_sub(1, std::memory_order_relaxed);
    recording::changed();
    if (!before_.empty() || !after_.empty() || !backward_.empty()) return;
    const auto it = table.all.find(key_);
    if (it != table.all.end() && it->second.get() == this) table.all.erase(it);
  }

  // Calls each hook of a list, as it is now, with these arguments.
  template <class Hook, class... A>
  void run(std::vector<HookEntry<Hook>> ModuleHooks::*list, const A&... arguments) {
    for (auto& entry : now(list)) (*entry.hook)(arguments...);
  }
  bool has_backward() { return !now(&ModuleHooks::backward_).empty(); }

  std::vector<HookEntry<ForwardPreHook>> before_;
  std::vector<HookEntry<ForwardHook>> after_;
  std::vector<HookEntry<FullBackwardHook>> backward_;

 private:
  template <class Hook>
  std::vector<HookEntry<Hook>> now(std::vector<HookEntry<Hook>> ModuleHooks::*list) {
    std::lock_guard lock(hook_table().mutex);
    return this->*list;
  }

  const ModuleKey key_;
  uint64_t next_id_ = 1;
};

ModuleHook::ModuleHook(ModuleHook&& other) noexcept
    : hooks_(std::move(other.hooks_)), id_(other.id_) {}

ModuleHook& ModuleHook::operator=(ModuleHook&& other) noexcept {
  if (this == &other) return *this;
  remove();
  hooks_ = std::move(other.hooks_);
  id_ = other.id_;
  return *this;
}

void ModuleHook::remove() {
  if (const auto hooks = std::exchange(hooks_, nullptr)) hooks->remove(id_);
}

ModuleHook register_forward_pre_hook(ModuleRef module, ForwardPreHook hook) {
  return ModuleHooks::add("register_forward_pre_hook", module, &ModuleHooks::before_,
                          std::move(hook));
}
ModuleHook register_forward_hook(ModuleRef module, ForwardHook hook) {
  return ModuleHooks::add("register_forward_hook", module, &ModuleHooks::after_, std::move(hook));
}
ModuleHook register_full_backward_hook(ModuleRef module, FullBackwardHook hook) {
  return ModuleHooks::add("register_full_backward_hook", module, &ModuleHooks::backward_,
                          std::move(hook));
}

namespace detail {

// What the backward pass of one call knows.
struct HookedCall::Backward {
  ModuleRef module;
  std::shared_ptr<ModuleHooks> hooks;
  std::vector<size_t> inputs, outputs;  // the numbers of those that require a gradient
  size_t num_inputs = 0, num_outputs = 0;

  static std::vector<Tensor> spread(std::span<const Tensor> grads, std::span<const size_t> numbers,
                                    size_t count) {
    std::vector<Tensor> all(count);
    for (size_t i = 0; i < numbers.size(); ++i) all[numbers[i]] = grads[i];
    return all;
  }
  void run(std::span<Tensor> grad_inputs, const std::vector<Tensor>& grad_outputs) const {
    hooks->run(&ModuleHooks::backward_, module, grad_inputs, std::span<const Tensor>(grad_outputs));
  }
  // The gradients of the outputs wait in the pass, not in the graph: several passes may go through
  // one graph at once, and a recorded gradient leads back to the graph.
  void take_outputs(std::span<const Tensor> grads) const {
    auto grad_outputs = spread(grads, outputs, num_outputs);
    if (!inputs.empty()) return PassValues::leave(this, std::move(grad_outputs));
    std::vector<Tensor> none(num_inputs);
    run(none, grad_outputs);
  }
  std::vector<Tensor> take_inputs(std::span<const Tensor> grads) const {
    std::vector<Tensor> all = spread(grads, inputs, num_inputs), mine;
    auto grad_outputs = PassValues::take(this);
    grad_outputs.resize(num_outputs);
    run(all, grad_outputs);
    for (size_t number : inputs) mine.push_back(all[number]);
    return mine;
  }

  // Both return their tensors; what counts is when their gradients come.
  template <bool first>
  struct Pass : autograd::Function<Pass<first>> {
    static constexpr const char* name = "full_backward_hook";
    static std::vector<Tensor> forward(autograd::Context& context,
                                       const std::vector<Tensor>& tensors,
                                       const std::shared_ptr<Backward>& call) {
      context.save("call", call);
      context.set_materialize_grads(false);
      return tensors;
    }
    static std::vector<Tensor> backward(autograd::Context& context, std::span<const Tensor> grads) {
      const Backward& call = *context.get<std::shared_ptr<Backward>>("call");
      std::vector<Tensor> mine(grads.begin(), grads.end());
      if constexpr (first)
        mine = call.take_inputs(grads);
      else
        call.take_outputs(grads);
      mine.emplace_back();  // for the argument that is no tensor
      return mine;
    }
  };

  template <bool first>
  static std::vector<size_t> pass(const std::shared_ptr<Backward>& call,
                                  std::span<Tensor* const> places) {
    std::vector<size_t> numbers;
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < places.size(); ++i)
      if (places[i]->defined() && places[i]->requires_grad()) {
        numbers.push_back(i);
        tensors.push_back(*places[i]);
      }
    if (numbers.empty()) return numbers;
    const auto passed = Pass<first>::apply(tensors, call);
    for (size_t i = 0; i < numbers.size(); ++i) *places[numbers[i]] = passed[i];
    return numbers;
  }
};

HookedCall::HookedCall(ModuleRef module, std::shared_ptr<ModuleHooks> hooks)
    : module_(module), hooks_(std::move(hooks)) {}
HookedCall::~HookedCall() = default;

std::unique_ptr<HookedCall> HookedCall::begin(ModuleRef module) {
  auto hooks = ModuleHooks::find(module);
  if (!hooks) return nullptr;
  return std::unique_ptr<HookedCall>(new HookedCall(module, std::move(hooks)));
}

void HookedCall::enter(std::span<Tensor* const> places) {
  for (auto* place : places) called_.push_back(*place);
  inputs_ = called_;
  hooks_->run(&ModuleHooks::before_, module_, std::span<Tensor>(inputs_));
  for (size_t i = 0; i < places.size(); ++i) *places[i] = inputs_[i];
  prepare_backward(places);
  for (auto* place : places) given_.push_back(*place);
}

void HookedCall::prepare_backward(std::span<Tensor* const> places) {
  if (!grad_enabled() || !hooks_->has_backward()) return;
  backward_ = std::make_shared<Backward>();
  backward_->module = module_;
  backward_->hooks = hooks_;
  backward_->num_inputs = places.size();
  backward_->inputs = Backward::pass<true>(backward_, places);
}

bool HookedCall::take_assigned(std::span<Tensor* const> places, size_t first, size_t count) const {
  const auto given = std::span(given_).subspan(first, count),
             called = std::span(called_).subspan(first, count);
  const auto is_at = [](const Tensor& t, const Tensor* place) { return t.is_same(*place); };
  const bool assigned =
      !std::equal(given.begin(), given.end(), places.begin(), places.end(), is_at);
  for (size_t i = 0; i < places.size(); ++i) {
    // Forward may have moved them within a list.
    const auto is_here = [&](const Tensor& t) { return is_at(t, places[i]); };
    if (i < count && is_here(given[i]))
      *places[i] = called[i];
    else if (const auto it = std::find_if(given.begin(), given.end(), is_here); it != given.end())
      *places[i] = called[static_cast<size_t>(it - given.begin())];
  }
  return assigned;
}

void HookedCall::leave(std::span<Tensor* const> places) {
  std::vector<Tensor> outputs;
  for (auto* place : places) outputs.push_back(*place);
  hooks_->run(&ModuleHooks::after_, module_, std::span<const Tensor>(inputs_),
              std::span<Tensor>(outputs));
  for (size_t i = 0; i < places.size(); ++i) *places[i] = outputs[i];
  if (!backward_) return;
  backward_->num_outputs = places.size();
  backward_->outputs = Backward::pass<false>(backward_, places);
}

}  // namespace detail

}  // namespace tenon::nn
