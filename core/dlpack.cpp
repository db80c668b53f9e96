#include <memory>
#include <vector>

#include <fmt/core.h>

#include <tenon/core/dlpack.h>
#include <tenon/core/dlpack_layout.h>
#include <tenon/core/extent.h>
#include <tenon/core/format.h>
#include <tenon/core/grad_mode.h>
#include <tenon/core/host_tensor.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

namespace {

struct TypeOfDLPack {
  DType dtype;
  uint8_t code;
};
constexpr TypeOfDLPack kTypes[] = {
    {f32, dlpack::kFloat}, {f64, dlpack::kFloat}, {f16, dlpack::kFloat}, {bf16, dlpack::kBfloat},
    {i64, dlpack::kInt},   {i32, dlpack::kInt},   {u8, dlpack::kUInt},   {boolean, dlpack::kBool}};

DType dtype_of_dlpack(const DLDataType& type) {
  if (type.lanes == 1)
    for (auto& t : kTypes)
      if (t.code == type.code && size_of(t.dtype) * 8 == type.bits) return t.dtype;
  throw DTypeError(fmt::format(
      "from_dlpack: elements of code {} with {} bits and {} lanes are none of Tenon's: float of "
      "16, 32 and 64 bits, bfloat, int of 32 and 64 bits, uint of 8 bits and bool, in one lane",
      type.code, type.bits, type.lanes));
}

Shape list_of(const DLTensor& t, const int64_t* numbers) {
  return std::span<const int64_t>(numbers, static_cast<size_t>(t.ndim));
}

// `release` gives the memory back.
template <class Release>
Tensor import(const DLTensor& t, Release release) {
  const int32_t device = t.device.device_type;
  if (device != dlpack::kCPU && device != dlpack::kCUDAHost && device != dlpack::kROCMHost)
    throw DeviceError(fmt::format(
        "from_dlpack: the memory is on a device of type {} (number {}), but only memory "
        "of the CPU (type {}) can be used; copy it there first",
        device, t.device.device_id, dlpack::kCPU));
  const DType dtype = dtype_of_dlpack(t.dtype);
  if (t.ndim < 0 || (t.ndim > 0 && !t.shape))
    throw ValueError(fmt::format("from_dlpack: {} dimensions without a shape", t.ndim));
  const Shape shape = list_of(t, t.shape);
  require_addressable("from_dlpack", shape);
  const Strides strides = t.strides ? list_of(t, t.strides) : shape.contiguous_strides();
  char* data = static_cast<char*>(t.data);
  return from_blob(data ? data + t.byte_offset : nullptr, shape, strides, dtype,
                   [release](void*) { release(); });
}

template <class Managed>
auto giving_back(Managed* managed) {
  return [managed] {
    if (managed->deleter) managed->deleter(managed);
  };
}

template <class Managed>
void require_managed(const Managed* managed) {
  if (!managed) throw ValueError("from_dlpack: a null pointer is no tensor");
}

// What is exported: the struct, and what its pointers lead to.
template <class Managed>
struct Exported {
  Managed managed{};
  Tensor tensor;
  Shape shape, strides;
};

template <class Managed>
std::unique_ptr<Exported<Managed>> exported(const Tensor& tensor, const char* caller) {
  auto& t = checked_impl(tensor, caller);
  if (tensor.requires_grad())
    throw AutogradError(fmt::format(
        "{}: the tensor of shape {} requires a gradient, which others know nothing of; export its "
        "detach()",
        caller, t.shape));
  if (t.device.type() != "cpu")
    throw DeviceError(fmt::format(
        "{}: the tensor is on {}, but only memory of the CPU can be exported; move it with "
        ".to(\"cpu\")",
        caller, t.device));
  tensor.wait();
  t.storage->exported.store(true, std::memory_order_relaxed);
  auto made = std::make_unique<Exported<Managed>>();
  made->tensor = tensor;
  made->shape = t.shape;
  made->strides = t.strides;
  DLTensor& out = made->managed.dl_tensor;
  out.data = t.data();
  out.device = {dlpack::kCPU, 0};
  out.ndim = static_cast<int32_t>(t.shape.size());
  for (auto& type : kTypes)
    if (type.dtype == t.dtype)
      out.dtype = {type.code, static_cast<uint8_t>(size_of(t.dtype) * 8), 1};
  out.shape = const_cast<int64_t*>(made->shape.data());
  out.strides = const_cast<int64_t*>(made->strides.data());
  made->managed.manager_ctx = made.get();
  made->managed.deleter = [](Managed* self) {
    delete static_cast<Exported<Managed>*>(self->manager_ctx);
  };
  return made;
}

}  // namespace

Tensor from_dlpack(DLManagedTensor* managed) {
  require_managed(managed);
  return import(managed->dl_tensor, giving_back(managed));
}

Tensor from_dlpack(DLManagedTensorVersioned* managed) {
  require_managed(managed);
  if (managed->version.major != 1)
    throw ValueError(fmt::format("from_dlpack: the tensor is of DLPack {}.{}, but Tenon knows 1.x",
                                 managed->version.major, managed->version.minor));
  if (!(managed->flags & dlpack::kReadOnly))
    return import(managed->dl_tensor, giving_back(managed));
  const Tensor copy = no_grad([&] { return import(managed->dl_tensor, [] {}).clone(); });
  copy.wait();
  giving_back(managed)();
  return copy;
}

DLManagedTensor* to_dlpack(const Tensor& tensor) {
  return &exported<DLManagedTensor>(tensor, "to_dlpack").release()->managed;
}

DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& tensor) {
  auto made = exported<DLManagedTensorVersioned>(tensor, "to_dlpack_versioned");
  made->managed.version = {1, 0};
  return &made.release()->managed;
}

}  // namespace tenon
