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

StagedLoad::StagedLoad(nn::ModuleRef model, bool keep)
    : keep_(keep), targets_(nn::state_entries(model)), values_(targets_.size()) {
  for (const nn::StateEntry& entry : targets_) ++owned_[impl_of(entry.tensor).storage.get()];
}

Tensor StagedLoad::converted(size_t target, const Tensor& source) const {
  const Tensor& like = targets_[target].tensor;
  Tensor values = source.to(like.device()).to(like.dtype()).contiguous();
  // It may be overwritten before it is read.
  return owned_.contains(impl_of(values).storage.get()) ? values.clone().wait() : values.wait();
}

void StagedLoad::add(size_t position, const Tensor& source) {
  NoGrad guard;
  const Tensor& target = targets_[position].tensor;
  Tensor values = source.detach().wait();
  if (are_one(values, target)) {
    values_[position] = std::move(values);
    return;
  }
  values = converted(position, values);
  if (keep_ || owned_.at(impl_of(target).storage.get()) > 1) values_[position] = std::move(values);
  steps_.push_back(position);
}

void StagedLoad::commit() {
  NoGrad guard;
  for (size_t i : steps_)
    if (!can_swap_values(targets_[i].tensor, values_[i]))
      prepare_copy(targets_[i].tensor, values_[i]);
  // Queueing a copy needs a few bytes of the host's memory. If there are none, this reserve is
  // freed.
  auto reserve = std::make_unique<std::byte[]>(kReserveBytes);
  for (size_t i : steps_) {
    for (bool done = false; !done;) {
      try {
        if (can_swap_values(targets_[i].tensor, values_[i]))
          swap_values(targets_[i].tensor, values_[i]);
        else
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

void StagedLoad::commit(const std::function<Tensor(size_t target)>& again) {
  NoGrad guard;
  for (size_t i : steps_) {
    if (!values_[i].defined()) values_[i] = converted(i, again(i).detach().wait());
    targets_[i].tensor.copy_(values_[i]);
    targets_[i].tensor.wait();
    values_[i] = {};
  }
}

}  // namespace tenon
