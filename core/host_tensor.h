// Tensors that the host fills in: what data sets and readers of files begin with.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon {

// A contiguous tensor on cpu:0 with undefined values, and where to write them: no queued work uses
// this memory. `values` is null where there are no elements. Fill it in before anybody else has the
// tensor, whose values do not change from then on.
struct HostTensor {
  Tensor tensor;
  void* values;
};
// ShapeError where the shape cannot be addressed, OutOfMemoryError where there is no room for it.
TENON_API HostTensor make_host_tensor(const Shape& shape, DType dtype);

// `tensor` on cpu:0, contiguous and detached. Waits for its values and throws what went wrong with
// them.
TENON_API Tensor on_host(const Tensor& tensor);
// Where the values of a tensor that came from on_host are; null where it has no elements.
TENON_API const void* host_values(const Tensor& tensor);

}  // namespace tenon
