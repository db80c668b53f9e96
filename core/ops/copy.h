// Copies: to another device or type, into one piece, into an existing tensor. The methods of Tensor are the same functions.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon {

// x itself where it is on that device already. Asynchronous; the gradient travels back.
TENON_API Tensor to(const Tensor& x, Device device);
// x itself where it is of that type already. Floating values are truncated to integers; bool is `x != 0`.
TENON_API Tensor to(const Tensor& x, DType dtype);
// x itself where it is row-major without gaps already.
TENON_API Tensor contiguous(const Tensor& x);
// Always a copy, row-major.
TENON_API Tensor clone(const Tensor& x);

}  // namespace tenon
