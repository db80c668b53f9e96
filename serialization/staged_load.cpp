#include <memory>
#include <new>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/dispatch/transfer.h>
#include <tenon/core/tensor_impl.h>
#include <tenon/serialization/staged_load.h>

namespace tenon {
namespace {

constexpr size_t kReserveBytes = size_t{1} << 18;

// Whether both tensors have the same elements of memory in the same order.
bool are_one(const Tensor& a, const Tensor& b) {
  const TensorImpl &x = impl_of(a), &y = impl_of(b);
  return x.storage == y.storage && x.offset == y.offset && x.dtype == y.dtype &&
         x.shape == y.shape && x.strides == y.strides;
}

}  // namespace

StagedLoad::StagedLoad(nn::ModuleRef model)
    : targets_(nn::state_entries(model)), values_(targets_.size()) {
  for (const nn::StateEntry& entry : targets_) owned_.insert(impl_of(entry.tensor).storage.get());
}

void StagedLoad::add(size_t position, const Tensor& source) {
  NoGrad guard;
  const Tensor& target = targets_[position].tensor;
  Tensor values = source.detach().wait();
  if (are_one(values, target)) {
    values_[position] = std::move(values);
    return;
  }
  values = values.to(target.device()).to(target.dtype()).contiguous();
  if (owned_.contains(impl_of(values).storage.get()))
    values = values.clone();  // it may be overwritten before it is read
  values_[position] = values.wait();
  steps_.push_back(position);
}

void StagedLoad::commit() {
  NoGrad guard;
  for (size_t i : steps_) prepare_copy(targets_[i].tensor, values_[i]);
  // Queueing a copy needs a few bytes of the host's memory. If there are none, this reserve is
  // freed.
  auto reserve = std::make_unique<std::byte[]>(kReserveBytes);
  for (size_t i : steps_) {
    for (bool done = false; !done;) {
      try {
        targets_[i].tensor.copy_(values_[i]);
        done = true;
      } catch (const std::bad_alloc&) {
        if (!reserve) throw;
        reserve.reset();
      }
    }
  }
  for (size_t i : steps_) targets_[i].tensor.wait();
}

}  // namespace tenon
