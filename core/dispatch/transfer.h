// Copies values between devices, and between a device and the host.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon {

// Queues a copy of a tensor without gaps to another device and returns the result at once, with the
// strides of the source. The copy overlaps with other work of both devices.
Tensor copy_to_device(const Tensor& dense_source, Device destination);
// The same, into an existing contiguous tensor of the same dtype and shape. It is not recorded, and
// increments the version.
void copy_between_devices(const Tensor& contiguous_source, const Tensor& destination);
// Prepares target.copy_(source), for tensors of the same dtype, shape and device, and throws any
// error that would prevent it. The copy itself then needs no memory of the device.
void prepare_copy(const Tensor& target, const Tensor& source);
// Whether swap_values(target, values) does what target.copy_(values) would do: they have the same
// dtype, shape and device, the host can read it, and both are contiguous and alone in their memory,
// so that nobody can tell. Not while something is recorded.
bool can_swap_values(const Tensor& target, const Tensor& values);
// Exchanges the memory of two tensors, and counts that as a change of the first. It needs no memory
// and does not wait.
void swap_values(const Tensor& target, const Tensor& values) noexcept;
// Waits for the values of a contiguous tensor and writes them to `destination`. Throws the error of
// the work that should have computed them.
void read_to_host(const Tensor& contiguous_source, void* destination);
// Returns a tensor with a copy of host values. The host memory may be reused when this returns.
Tensor tensor_from_host(const void* values, DType dtype, const Shape& shape, Device device);
// Returns the elements from the first to the last of a tensor, and those that lie between them in
// memory, in one dimension. It shares the memory. Unlike a contiguous copy, no operator of the
// device has to make it, and it can be copied as bytes. Requires an element.
TENON_API Tensor span_of(const Tensor& x);
// Returns a contiguous tensor with undefined values.
Tensor allocate_tensor(const Shape& shape, DType dtype, Device device);

}  // namespace tenon
