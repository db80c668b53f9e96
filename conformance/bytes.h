// Moves values to and from a device by copying bytes. The kit makes, converts, lays out and
// compares values only on the host or on the reference device. If the device under test did this,
// its own mistakes could hide, and an operator that it lacks would prevent all comparisons.
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
