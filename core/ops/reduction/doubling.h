// Scans by other operators, for backends without a kernel.
#pragma once

#include <tenon/core/dispatch/op.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

// Returns x with each element along `dim` combined with all before it, or behind it with `reverse`.
// Each step doubles how many are combined (Hillis and Steele, "Data parallel algorithms", 1986).
// `combine` is associative and takes two parts of x, the second of which is combined later.
template <class Combine>
Tensor doubled(const Tensor& x, int64_t dim, bool reverse, Combine&& combine) {
  const int64_t n = size_along(x, dim);
  Tensor y = n > 1 ? x : x.clone();
  for (int64_t k = 1; k < n; k *= 2) {
    const Tensor low = y.narrow(dim, 0, n - k), high = y.narrow(dim, k, n - k);
    y = reverse ? cat({combine(high, low), y.narrow(dim, n - k, k)}, dim)
                : cat({y.narrow(dim, 0, k), combine(low, high)}, dim);
  }
  return y;
}

}  // namespace tenon
