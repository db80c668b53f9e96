#include <tenon/serialization/staged_load.h>

#include <memory>
#include <new>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/runtime/transfer.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {
namespace {

constexpr size_t reserve_bytes = size_t{1} << 18;

// Whether both name the same places in memory in the same order.
bool are_one(const Tensor& a, const Tensor& b) {
  const TensorImpl &x = impl_of(a), &y = impl_of(b);
  return x.storage == y.storage && x.offset == y.offset && x.dtype == y.dtype && x.shape == y.shape && x.strides == y.strides;
}

}  // namespace

StagedLoad::StagedLoad(nn::ModuleRef model) : targets_(nn::state_entries(model)) {
  for (const nn::StateEntry& entry : targets_) owned_.insert(impl_of(entry.tensor).storage.get());
}

void StagedLoad::add(size_t position, const Tensor& source) {
  NoGrad guard;
  const Tensor& target = targets_[position].tensor;
  Tensor values = source.detach().wait();
  if (are_one(values, target)) return;
  values = values.to(target.device()).to(target.dtype()).contiguous();
  if (owned_.contains(impl_of(values).storage.get())) values = values.clone();  // it may be overwritten before it is read
  steps_.push_back({target, values.wait()});
}

void StagedLoad::commit() {
  NoGrad guard;
  for (const Step& step : steps_) prepare_copy(step.target, step.values);
  // Queueing a copy takes a few bytes of the host's memory: where these are missing, they come from here.
  auto reserve = std::make_unique<std::byte[]>(reserve_bytes);
  for (Step& step : steps_) {
    for (bool done = false; !done;) {
      try {
        step.target.copy_(step.values);
        done = true;
      } catch (const std::bad_alloc&) {
        if (!reserve) throw;
        reserve.reset();
      }
    }
  }
  for (const Step& step : steps_) step.target.wait();
}

}  // namespace tenon
