// Tensors whose values the host writes, for data sets and readers of files.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon {

// A contiguous tensor on cpu:0 with undefined values, and the address to which to write them. No
// queued work uses this memory. `values` is null if there are no elements. Write the values before
// you hand out the tensor, and do not change them afterwards.
struct HostTensor {
  Tensor tensor;
  void* values;
};
// Throws a ShapeError if the shape cannot be addressed, and an OutOfMemoryError if there is no
// memory for it.
TENON_API HostTensor make_host_tensor(const Shape& shape, DType dtype);

// Returns `tensor` on cpu:0, contiguous and detached. Waits for its values and throws the error of
// the work that should have computed them.
TENON_API Tensor on_host(const Tensor& tensor);
// Returns the address of the values of a tensor that on_host returned; null if it has no elements.
TENON_API const void* host_values(const Tensor& tensor);

}  // namespace tenon
