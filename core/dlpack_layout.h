// The structs of DLPack 0.8 and 1.0 as memory has them, so that nobody needs dlpack/dlpack.h. Do
// not include both in one file.
#pragma once

#include <cstdint>

struct DLDevice {
  int32_t device_type;
  int32_t device_id;
};
struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // null: row-major
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};
struct DLPackVersion {
  uint32_t major, minor;
};
struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
};

namespace tenon::dlpack {
// Values of DLDevice::device_type, of DLDataType::code, and of DLManagedTensorVersioned::flags.
inline constexpr int32_t kCPU = 1, kCUDAHost = 3, kROCMHost = 11;
inline constexpr uint8_t kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kBool = 6;
inline constexpr uint64_t kReadOnly = 1;
}  // namespace tenon::dlpack
