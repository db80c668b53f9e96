// What the gradients of svd and eigh share.
#pragma once

#include <tenon/core/ops/arithmetic.h>
#include <tenon/core/ops/linalg/matrices.h>
#include <tenon/core/ops/pointwise.h>

namespace tenon {

// x diag(d), and diag(d) x.
inline Tensor times_columns(const Tensor& x, const Tensor& d) { return x * unsqueeze(d, -2); }
inline Tensor times_rows(const Tensor& d, const Tensor& x) { return unsqueeze(d, -1) * x; }
// Element (i, j) is d[j] - d[i], with ones on the diagonal to divide by.
inline Tensor differences(const Tensor& d) {
  return unsqueeze(d, -2) - unsqueeze(d, -1) + unit_like(d, shape_of(d).back());
}
// x^T without its symmetric part: x - x^T.
inline Tensor skew(const Tensor& x) { return x - turned(x); }

}  // namespace tenon
