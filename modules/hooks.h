// Functions that calls of a module run before, after, and in the backward pass.
#pragma once

#include <array>
#include <atomic>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/core/autograd/tensors_in.h>
#include <tenon/modules/fields.h>

namespace tenon::nn {

class ModuleHooks;

// Owns a hook of a module, which it removes when it is destroyed. Keep it as long as the hook is
// to run, but not longer than the module: hooks belong to the object at its address, so that copies
// of the module have none and a moved module has lost them.
class TENON_API ModuleHook {
 public:
  // Owns nothing.
  ModuleHook() = default;
  // Takes the hook over from `other`, which owns nothing afterwards.
  ModuleHook(ModuleHook&& other) noexcept;
  // Removes its own hook and takes over that of `other`.
  ModuleHook& operator=(ModuleHook&& other) noexcept;
  ~ModuleHook() { remove(); }
  // Removes the hook now; does nothing if it owns none.
  void remove();

 private:
  friend class ModuleHooks;
  ModuleHook(std::shared_ptr<ModuleHooks> hooks, uint64_t id) : hooks_(std::move(hooks)), id_(id) {}
  std::shared_ptr<ModuleHooks> hooks_;
  uint64_t id_ = 0;
};

// ---- the arguments of hooks ----

// Tensors are those of the arguments or of the result, in their order: those in a std::vector,
// array, optional, map, pair or tuple as well, but none in other types. A tensor may be undefined.

// Runs before forward, on the arguments, which it may replace: inputs[0] = inputs[0] * 2.
using ForwardPreHook = std::function<void(ModuleRef module, std::span<Tensor> inputs)>;
// Runs after forward, with the arguments and the result, which it may replace.
using ForwardHook = std::function<void(ModuleRef module, std::span<const Tensor> inputs,
                                       std::span<Tensor> outputs)>;
// Runs in a backward pass when the gradients of all inputs of a call are known, and may replace
// them. An undefined tensor stands for a gradient that does not exist, also for an output that none
// has reached. If no input requires a gradient, the hook runs when those of the outputs are known.
using FullBackwardHook = std::function<void(ModuleRef module, std::span<Tensor> grad_inputs,
                                            std::span<const Tensor> grad_outputs)>;

// Hooks of a module run in the order in which they were registered, on the thread that calls the
// module or runs the backward pass; several threads may run them at once. Calls by operator() run
// them, direct calls of forward do not; calls that return nothing or a reference do not, either.
// A tensor that a hook puts in place of an argument is for this call alone: a variable that forward
// takes by reference has afterwards what forward assigned to it, or its earlier value.
// Exceptions of hooks reach the caller, and an Error of Tenon names the module. In nn::DataParallel
// the hooks of the wrapped model and of the modules in it run once for each device, with the
// tensors of that device, all on the calling thread; those of the DataParallel itself run once, on
// the whole batch. A module without hooks pays a test of a flag in each call, and while another one
// has hooks, a search in a table. Functions that register a hook throw a ValueError for an empty
// function or a reference to no module.

// Runs the hook before each call of the module's forward, as long as the result lives.
[[nodiscard]] TENON_API ModuleHook register_forward_pre_hook(ModuleRef module, ForwardPreHook hook);
// Runs the hook after each call of the module's forward, as long as the result lives.
[[nodiscard]] TENON_API ModuleHook register_forward_hook(ModuleRef module, ForwardHook hook);
// Runs the hook in each backward pass through a call of the module that was made while it was
// registered, as long as the result lives.
[[nodiscard]] TENON_API ModuleHook register_full_backward_hook(ModuleRef module,
                                                               FullBackwardHook hook);

namespace detail {

// The number of hooks in the process.
TENON_API extern std::atomic<uint32_t> hooks_registered;

// A call of a module that has hooks.
class TENON_API HookedCall {
 public:
  // Returns null if the module has none.
  static std::unique_ptr<HookedCall> begin(ModuleRef module);
  ~HookedCall();
  // Runs the hooks that come before forward, on the tensors at these places.
  void enter(std::span<Tensor* const> inputs);
  // Runs the hooks that come after forward, on the tensors at these places.
  void leave(std::span<Tensor* const> outputs);
  // Returns whether forward has assigned to one argument, the `count` tensors from `first` on,
  // which are at these places now; those that hooks replaced become the caller's again.
  bool take_assigned(std::span<Tensor* const> places, size_t first, size_t count) const;

 private:
  struct Backward;
  HookedCall(ModuleRef module, std::shared_ptr<ModuleHooks> hooks);
  void prepare_backward(std::span<Tensor* const> places);
  ModuleRef module_;
  std::shared_ptr<ModuleHooks> hooks_;
  std::vector<Tensor> called_;          // as the caller gave them
  std::vector<Tensor> inputs_;          // as the hooks left them
  std::vector<Tensor> given_;           // as forward got them
  std::shared_ptr<Backward> backward_;  // null if nothing is to be done there
};

// The type in which a call keeps an argument: a copy if it has tensors, which hooks may replace.
template <class A>
using HookedArgument = std::conditional_t<tenon::detail::has_tensors<A> &&
                                              std::is_copy_constructible_v<std::decay_t<A>>,
                                          std::decay_t<A>, A&&>;

// Is true for a type that is nothing but tensors, so that their comparison shows every change.
template <class T>
inline constexpr bool only_tensors = std::derived_from<T, Tensor>;
template <class T, class A>
inline constexpr bool only_tensors<std::vector<T, A>> = only_tensors<T>;
template <class T, size_t N>
inline constexpr bool only_tensors<std::array<T, N>> = only_tensors<T>;
template <class T>
inline constexpr bool only_tensors<std::optional<T>> = only_tensors<T>;

// Gives a variable of the caller what forward assigned to its copy. A variable that did not change
// is not written to: other threads may read it.
template <class A, class Kept>
void give_back(const HookedCall& call, A& argument, Kept& kept, size_t first, size_t count) {
  if constexpr (tenon::detail::has_tensors<A> && std::is_same_v<A, Kept> &&
                std::is_copy_constructible_v<A> && std::is_move_assignable_v<A>) {
    const bool assigned = call.take_assigned(tenon::detail::places_of_tensors(kept), first, count);
    if (assigned || !only_tensors<A>) argument = std::move(kept);
  }
}

// Calls forward(arguments…) between the hooks.
template <class Result, class F, class... A>
[[gnu::noinline]] Result call_hooked(HookedCall& call, F forward, A&&... arguments) {
  const std::array<size_t, sizeof...(A)> counts{tenon::detail::tensors_in(arguments).size()...};
  std::tuple<HookedArgument<A>...> kept(std::forward<A>(arguments)...);
  call.enter(tenon::detail::places_of_tensors(kept));
  auto end = [&] {
    std::apply(
        [&](auto&... items) {
          [[maybe_unused]] size_t number = 0, first = 0;
          (
              [&] {
                if constexpr (std::is_lvalue_reference_v<A>)
                  give_back(call, arguments, items, first, counts[number]);
                first += counts[number++];
              }(),
              ...);
        },
        kept);
  };
  auto run = [&](auto&... items) -> Result {
    try {
      return forward(
          static_cast<
              std::conditional_t<std::is_lvalue_reference_v<A>,
                                 std::conditional_t<std::is_const_v<std::remove_reference_t<A>>,
                                                    const std::remove_cvref_t<decltype(items)>&,
                                                    std::remove_reference_t<decltype(items)>&>,
                                 std::remove_reference_t<decltype(items)>&&>>(items)...);
    } catch (...) {
      end();
      throw;
    }
  };
  Result result = std::apply(run, kept);
  end();
  call.leave(tenon::detail::places_of_tensors(result));
  return result;
}

}  // namespace detail

}  // namespace tenon::nn
