// Functions that backward passes call on their way.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include <tenon/core/tensor.h>

namespace tenon {

class HookList;

// Removes a hook. Copies of a handle name one hook; a handle that is destroyed removes nothing.
class TENON_API HookHandle {
 public:
  // Makes a handle of no hook.
  HookHandle() = default;
  // Removes the hook. Does nothing if it was removed already, or if its tensor is gone.
  void remove();

 private:
  friend class HookList;
  HookHandle(std::weak_ptr<HookList> list, uint64_t id) : list_(std::move(list)), id_(id) {}
  std::weak_ptr<HookList> list_;
  uint64_t id_ = 0;
};

// Takes the gradient of a tensor, and returns what takes its place, or an undefined tensor if it
// stays as it is.
using GradientHook = std::function<Tensor(const Tensor& gradient)>;

// Has backward passes call hook(gradient) with the whole gradient of a tensor: those of backward()
// and grad(), for leaves and for tensors that operators made. Hooks run in the order in which they
// were registered, on the thread that runs the backward pass, each once in a pass: when all parts
// of the gradient are summed, those of other devices included, and before the gradient goes on to
// the operator that made the tensor, or is added to the grad() of a leaf. Operators in a hook are
// recorded if the pass is (create_graph). A hook of a tensor that an operator made lives as long as
// the graph, even if the tensor is gone; it must not own the tensor itself, which would keep both
// forever. An exception ends the pass and reaches who started it. Throws an AutogradError for a
// tensor that requires no gradient. A pass throws a ShapeError, a DTypeError or a DeviceError for a
// returned tensor that does not fit.
TENON_API HookHandle register_hook(const Tensor& tensor, GradientHook hook);

// Registers any callable: one that returns nothing leaves the gradient as it is.
template <class Hook>
HookHandle Tensor::register_hook(Hook&& hook) const {
  if constexpr (std::is_void_v<std::invoke_result_t<std::decay_t<Hook>&, const Tensor&>>)
    return tenon::register_hook(
        *this, [hook = std::forward<Hook>(hook)](const Tensor& gradient) mutable -> Tensor {
          hook(gradient);
          return Tensor();
        });
  else
    return tenon::register_hook(*this, std::forward<Hook>(hook));
}

}  // namespace tenon
