#include <tenon/core/autograd/autograd.h>
#include <tenon/core/autograd/replica.h>
#include <tenon/core/runtime/transfer.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

void allow_replicas(const Tensor& tensor) {
  auto& meta = checked_impl(tensor, "allow_replicas").meta();
  if (!meta.replicas) meta.replicas = std::make_shared<ReplicaSet>();
}

bool has_replicas(const Tensor& tensor) {
  auto& t = checked_impl(tensor, "has_replicas");
  return t.autograd && t.autograd->replicas;
}

Tensor ReplicaSet::on(const Tensor& primary, Device device) {
  NoGrad guard;
  std::lock_guard lock(mutex_);
  for (auto& r : replicas_)
    if (r.device == device) {
      if (r.version != primary.version() || r.own_version != r.values.version()) {
        copy_between_devices(primary.contiguous(), r.values);
        r.version = primary.version();
        r.own_version = r.values.version();
      }
      return r.values;
    }
  Tensor values = copy_to_device(primary.contiguous(), device);
  replicas_.push_back({device, values, primary.version(), values.version()});
  return replicas_.back().values;
}

Tensor resolve_replica(const Tensor& tensor, Device device) {
  auto& t = impl_of(tensor);
  if (t.device == device || !t.autograd || !t.autograd->replicas) return tensor;
  return t.autograd->replicas->on(tensor, device);
}

}  // namespace tenon
