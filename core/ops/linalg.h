// Products of matrices. Floating types; mixed types are promoted.
#pragma once

#include <string_view>

#include <tenon/core/tensor.h>

namespace tenon {

// As torch.matmul: vectors are rows on the left and columns on the right and give up that dimension
// again; leading dimensions are batches and broadcast. (…, m, k) by (…, k, n) gives (…, m, n).
// ShapeError names both shapes.
TENON_API Tensor matmul(const Tensor& a, const Tensor& b);
// (m, k) by (k, n), nothing else.
TENON_API Tensor mm(const Tensor& a, const Tensor& b);
// (batch, m, k) by (batch, k, n), nothing else.
TENON_API Tensor bmm(const Tensor& a, const Tensor& b);
// x weight^T + bias. x (…, in), weight (out, in), bias (out) or undefined; gives (…, out).
TENON_API Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = Tensor());
// relu(linear(x, weight, bias)), in one step where the device's plugin offers it.
TENON_API Tensor linear_relu(const Tensor& x, const Tensor& weight, const Tensor& bias = Tensor());

// How exactly devices multiply f32 in matrix products and convolutions, as
// torch.set_float32_matmul_precision: "highest" (the default) in f32, "high" lets a device round
// the factors to TF32 (10 bits), which is several times as fast on GPUs that have it. For calls
// from now on, of all threads; a gradient has the precision of its forward call. ValueError for
// other words.
TENON_API void set_float32_matmul_precision(std::string_view precision);
TENON_API std::string_view float32_matmul_precision();

}  // namespace tenon
