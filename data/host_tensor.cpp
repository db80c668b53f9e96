#include <tenon/data/host_tensor.h>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/error.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/tensor_impl.h>

namespace tenon::data {

HostTensor make_host_tensor(const Shape& shape, DType dtype) {
  const Device cpu;
  uint64_t bytes = size_of(dtype);
  for (int64_t dim : shape)
    if (dim < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes) || bytes >> 56)
      throw OutOfMemoryError("a tensor of shape " + shape.str() + " cannot be made");
  Ref<Storage> storage = context_of(cpu).memory->allocate_for_host(bytes);
  void* values = storage->data;
  auto* made = new TensorImpl(dtype, cpu, shape, shape.contiguous_strides(), 0, std::move(storage));
  return {Tensor(Ref<TensorImpl>::adopt(made)), values};
}

Tensor on_host(const Tensor& tensor) {
  NoGrad guard;
  Tensor there = tensor.detach().to(Device()).contiguous();
  there.wait();
  return there;
}

const void* host_values(const Tensor& tensor) { return impl_of(tensor).data(); }

}  // namespace tenon::data
