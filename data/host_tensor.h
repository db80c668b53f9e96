// Tensors that the host fills in. Internal: values are immutable once anybody else has the tensor.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon::data {

// A contiguous tensor on cpu:0 with undefined values, and where to write them at once: no queued
// work uses this memory. Null where there are no elements.
struct HostTensor {
  Tensor tensor;
  void* values;
};
HostTensor make_host_tensor(const Shape& shape, DType dtype);

// `tensor` on cpu:0, contiguous, detached, its values there.
Tensor on_host(const Tensor& tensor);
// The values of such a tensor.
const void* host_values(const Tensor& tensor);

}  // namespace tenon::data
