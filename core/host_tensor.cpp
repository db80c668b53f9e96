#include <tenon/core/extent.h>
#include <tenon/core/grad_mode.h>
#include <tenon/core/host_tensor.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

HostTensor make_host_tensor(const Shape& shape, DType dtype) {
  const Device cpu;
  require_addressable("a tensor cannot be made", shape);
  const uint64_t bytes = static_cast<uint64_t>(shape.numel()) * size_of(dtype);
  Ref<Storage> storage = context_of(cpu).memory->allocate_for_host(bytes);
  void* values = storage->data;
  auto* made = new TensorImpl(dtype, cpu, shape, shape.numel(), std::move(storage));
  return {Tensor(Ref<TensorImpl>::adopt(made)), values};
}

Tensor on_host(const Tensor& tensor) {
  NoGrad guard;
  Tensor there = tensor.detach().to(Device()).contiguous();
  there.wait();
  return there;
}

const void* host_values(const Tensor& tensor) { return impl_of(tensor).data(); }

}  // namespace tenon
