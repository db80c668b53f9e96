#include <cstdint>

#include <fmt/core.h>

#include <tenon/core/base/host_room.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/dispatch/written.h>
#include <tenon/core/extent.h>
#include <tenon/core/format.h>
#include <tenon/core/grad_mode.h>
#include <tenon/core/host_tensor.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/runtime/adopted.h>
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
  recording::reads("the host");
  NoGrad guard;
  Tensor there = tensor.detach().to(Device()).contiguous();
  there.wait();
  return there;
}

const void* host_values(const Tensor& tensor) { return impl_of(tensor).data(); }

// ---- memory of the user ----

namespace {

// Returns how many elements lie from the first place of memory to the last that the tensor uses.
uint64_t extent_of(const Shape& shape, const Strides& strides) {
  if (strides.size() != shape.size())
    throw ValueError(fmt::format("from_blob: shape {} has {} dimensions, but there are {} strides",
                                 shape, shape.size(), strides.size()));
  require_addressable("from_blob", shape);
  for (int64_t dim : shape)
    if (dim == 0) return 0;
  int64_t last = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (strides[i] < 0)
      throw ValueError(
          fmt::format("from_blob: strides {} are negative, which no tensor has; give the address "
                      "of the first element in memory, and flip() the result",
                      strides));
    int64_t step;
    if (__builtin_mul_overflow(shape[i] - 1, strides[i], &step) ||
        __builtin_add_overflow(last, step, &last) || last >= kMaxNumel)
      throw ShapeError(
          fmt::format("from_blob: shape {} with strides {} reaches further than can be addressed",
                      shape, strides));
  }
  return static_cast<uint64_t>(last) + 1;
}

// Strides that nobody takes, of one element or of none, may be anything. They are replaced where
// products with them could leave int64.
Strides usable_strides(const Shape& shape, const Strides& given, bool nothing) {
  const Strides row_major = Shape::row_major(shape);
  if (nothing) return row_major;
  Strides strides = given;
  for (size_t i = 0; i < shape.size(); ++i)
    if (strides[i] > kMaxNumel) strides[i] = row_major[i];
  return strides;
}

}  // namespace

Tensor from_blob(void* data, const Shape& shape, const Strides& given, DType dtype,
                 BlobDeleter deleter) {
  const uint64_t bytes = extent_of(shape, given) * size_of(dtype);
  const Strides strides = usable_strides(shape, given, bytes == 0);
  if (bytes && !data)
    throw ValueError(fmt::format("from_blob: a null pointer, but shape {} has elements", shape));
  if (bytes && reinterpret_cast<uintptr_t>(data) % size_of(dtype) != 0)
    throw ValueError(
        fmt::format("from_blob: the address {} is not a multiple of {}, the size of an element of "
                    "{}; copy the values with from_host",
                    data, size_of(dtype), dtype));
  const Device cpu;
  std::function<void()> release;
  if (deleter) release = [deleter = std::move(deleter), data] { deleter(data); };
  Ref<Storage> storage = adopt_memory(context_of(cpu), data, bytes);
  Tensor made(Ref<TensorImpl>::adopt(new TensorImpl(dtype, cpu, shape, strides, 0, storage)));
  storage->owner->release = std::move(release);  // now that nothing can fail any more
  return made;
}

Tensor from_blob(void* data, const Shape& shape, DType dtype, BlobDeleter deleter) {
  require_addressable("from_blob", shape);
  return from_blob(data, shape, shape.contiguous_strides(), dtype, std::move(deleter));
}

// ---- values that the host writes ----

namespace detail {

TENON_API const void* strided_data(const Tensor& x, const char* caller, DType expected);

HostWrite::HostWrite(const Tensor& tensor, DType dtype)
    : tensor_(tensor),
      data_(const_cast<void*>(strided_data(tensor, "write_", dtype))),
      size_(static_cast<size_t>(tensor.numel())) {
  require_mutable("write_", tensor);
  auto& t = impl_of(tensor);
  if (!t.contiguous)
    throw ValueError(
        fmt::format("write_: the tensor of shape {} is not contiguous; write to a "
                    "contiguous tensor, and copy_ its values",
                    t.shape));
  wait_until_unused(*t.storage);
}

HostWrite::~HostWrite() {
  auto& t = impl_of(tensor_);
  if (t.numel) note_written(t);
  const InPlaceChange changed(*t.storage);
}

}  // namespace detail

bool host_has_room(uint64_t count, uint64_t element_bytes) {
  return count <= context_of(Device()).max_bytes() / element_bytes;
}

void refuse_host_room(uint64_t count, uint64_t element_bytes, const std::string& what) {
  uint64_t bytes;
  if (__builtin_mul_overflow(count, element_bytes, &bytes)) bytes = ~uint64_t{0};
  context_of(Device()).refuse_allocation(bytes, what);
}

}  // namespace tenon
