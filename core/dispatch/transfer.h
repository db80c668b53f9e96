// Moving values between devices and the host.
#pragma once

#include <cstdint>
#include <string>

#include <tenon/core/tensor.h>

namespace tenon {

// Queues a copy of a contiguous tensor to another device and returns its result at once. Overlaps
// with work of both devices.
Tensor copy_to_device(const Tensor& contiguous_source, Device destination);
// As above, into an existing contiguous tensor of the same dtype and shape. Not recorded; raises
// its version.
void copy_between_devices(const Tensor& contiguous_source, const Tensor& destination);
// Makes everything ready for target.copy_(source), of the same dtype, shape and device, and throws
// whatever would keep it from being done: the copy itself then takes no memory of the device.
void prepare_copy(const Tensor& target, const Tensor& source);
// Waits for the values of a contiguous tensor and writes them to `destination`; throws what went
// wrong with them.
void read_to_host(const Tensor& contiguous_source, void* destination);
// A tensor with a copy of host values; the host memory may be reused when this returns.
Tensor tensor_from_host(const void* values, DType dtype, const Shape& shape, Device device);
// A contiguous tensor with undefined values.
Tensor allocate_tensor(const Shape& shape, DType dtype, Device device);

// Whether this machine could ever have `count` elements of `element_bytes` bytes each. Linux
// promises more than it has and kills the process later, so it is asked before.
bool host_has_room(uint64_t count, uint64_t element_bytes);
// OutOfMemoryError "<what>cannot allocate …".
[[noreturn]] void refuse_host_room(uint64_t count, uint64_t element_bytes, const std::string& what);

}  // namespace tenon
