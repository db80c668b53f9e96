// Values to and from a device by copies of bytes alone. Whatever the kit makes, converts, lays out
// or compares for its own sake, it does on the host or on the reference device: were the device
// that is checked to do it, its own mistakes would hide there, and what it lacks would keep
// everything else from being compared.
#pragma once

#include <vector>

#include <tenon/core/tensor.h>

namespace tenon::conformance {

// Returns the elements in row-major order, whatever the strides. Waits for them, and throws the
// error of the work that should have computed them.
std::vector<unsigned char> bytes_of(const Tensor& x);

// Returns a contiguous copy of the same dtype, without history, on `device`.
Tensor copied_to(const Tensor& x, Device device);
// The same on the device of x.
Tensor copied(const Tensor& x);

// Returns a contiguous tensor of bytes that are 0, which every dtype reads as 0.
Tensor zero_bytes(const Shape& shape, DType dtype, Device device);

// Returns the whole numbers of a tensor of i64 in i32, on its device.
Tensor as_i32(const Tensor& x);

}  // namespace tenon::conformance
