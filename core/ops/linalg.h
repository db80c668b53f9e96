// Products of matrices of floating dtypes. Every function throws a DTypeError for other dtypes and
// a ValueError for an undefined tensor.
#pragma once

#include <string_view>

#include <tenon/core/tensor.h>

namespace tenon {

// Returns the matrix product of a (…, m, k) and b (…, k, n), of shape (…, m, n), as torch.matmul
// does. Dimensions before the last two are batches and broadcast. A vector `a` is one row and a
// vector `b` one column; the result is without that dimension. Different dtypes are promoted.
// Throws a ShapeError that names both shapes if they do not fit, or if a tensor has no dimensions.
TENON_API Tensor matmul(const Tensor& a, const Tensor& b);

// Returns the product of the matrices a (m, k) and b (k, n), of shape (m, n). Different dtypes are
// promoted. Throws a ShapeError for any other shapes.
TENON_API Tensor mm(const Tensor& a, const Tensor& b);

// Returns the products of the matrices in a (batch, m, k) and b (batch, k, n), of shape
// (batch, m, n). Different dtypes are promoted. Throws a ShapeError for any other shapes.
TENON_API Tensor bmm(const Tensor& a, const Tensor& b);

// Returns x W^T + b of shape (…, out) for x (…, in), a weight W (out, in) and a bias b (out), which
// may be undefined. Throws a DTypeError unless all have one dtype, and a ShapeError if the shapes
// do not fit.
TENON_API Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = Tensor());

// Returns relu(linear(x, weight, bias)), in one step if the device's plugin offers that. Shapes and
// errors are those of linear.
TENON_API Tensor linear_relu(const Tensor& x, const Tensor& weight, const Tensor& bias = Tensor());

// Sets how exactly devices multiply f32 in matrix products and convolutions, as
// torch.set_float32_matmul_precision does. "highest", the default, multiplies in f32. "high" lets a
// device round the factors to TF32, which has 10 bits of mantissa and is several times as fast on
// GPUs that have it. The setting applies to calls of all threads from now on; a gradient is
// computed with the precision of its forward call. Throws a ValueError for any other word.
TENON_API void set_float32_matmul_precision(std::string_view precision);

// Returns the current setting, "highest" or "high".
TENON_API std::string_view float32_matmul_precision();

}  // namespace tenon
