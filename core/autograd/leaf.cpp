// What a tensor is to autograd.
#include <tenon/core/autograd/node.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/dispatch/replica.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

bool Tensor::requires_grad() const {
  auto& t = checked_impl(*this, "requires_grad");
  return t.autograd && t.autograd->requires_grad;
}

Tensor& Tensor::requires_grad_(bool value) {
  auto& t = checked_impl(*this, "requires_grad_");
  if (!is_leaf())
    throw AutogradError(
        "requires_grad_: only leaves can be changed; this tensor was computed by an operator, use "
        "detach() first");
  if (value && !is_floating_point(t.dtype))
    throw DTypeError(fmt::format(
        "requires_grad_: only floating-point tensors have gradients, this one is {}", t.dtype));
  if (value == (t.autograd && t.autograd->requires_grad)) return *this;
  AutogradMeta& meta = t.meta();
  meta.requires_grad = value;
  // A program holds the memory of every tensor that it uses from outside, and checks the flags of
  // its arguments in each call. So a change has to be reported only if somebody else holds the
  // memory.
  if (t.storage.unique()) return *this;
  if (meta.number == 0) meta.number = recording::new_number();
  recording::switched(meta.number, value);
  return *this;
}

bool Tensor::is_leaf() const {
  auto& t = checked_impl(*this, "is_leaf");
  return !t.autograd || !t.autograd->node;
}

Tensor Tensor::detach() const {
  auto& own = checked_impl(*this, "detach");
  // In a part of a call on several devices, the values are those of the device of the part.
  const Tensor replica = changes_replica(*this) ? replica_to_change(*this) : Tensor();
  const TensorImpl& t = replica.defined() ? impl_of(replica) : own;
  return Tensor(Ref<TensorImpl>::adopt(
      new TensorImpl(t.dtype, t.device, t.shape, t.strides, t.offset, t.storage)));
}

}  // namespace tenon
