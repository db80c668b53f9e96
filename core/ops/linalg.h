// Products of matrices. Floating types; mixed types are promoted.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon {

// As torch.matmul: vectors are rows on the left and columns on the right and give up that dimension again; leading dimensions are
// batches and broadcast. (…, m, k) by (…, k, n) gives (…, m, n). ShapeError names both shapes.
TENON_API Tensor matmul(const Tensor& a, const Tensor& b);
// (m, k) by (k, n), nothing else.
TENON_API Tensor mm(const Tensor& a, const Tensor& b);
// (batch, m, k) by (batch, k, n), nothing else.
TENON_API Tensor bmm(const Tensor& a, const Tensor& b);
// x weight^T + bias. x (…, in), weight (out, in), bias (out) or undefined; gives (…, out).
TENON_API Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = Tensor());

}  // namespace tenon
