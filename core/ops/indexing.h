// Selection by index.
//
// Indices are i64 or i32 and not negative; every function throws a DTypeError for indices of
// another dtype and a ValueError for an undefined tensor. An index out of range is an IndexError of
// the queued work, which the next wait throws and which names the position, the index and the
// bound.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon {

// Returns rows of the weight (v, d): indices of shape (…) give shape (…, d). The row `padding_idx`
// gets no gradient; with the default -1 every row does. Throws a ShapeError if the weight is not a
// matrix and an IndexError if padding_idx is outside [-1, v).
TENON_API Tensor embedding(const Tensor& indices, const Tensor& weight, int64_t padding_idx = -1);

// Returns the slices of x along `dim` that `index` (k) lists, in its order; the result has size k
// in that dimension. `dim` may be negative. Throws an IndexError if x has no such dimension and a
// ShapeError if the index has more than one dimension.
TENON_API Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index);

// Returns a tensor of the shape of `index` with, for dim 0 of a tensor of three dimensions,
// result[i][j][k] = x[index[i][j][k]][j][k], as torch.gather does. `dim` may be negative. Throws an
// IndexError if x has no such dimension, and a ShapeError if the index has another number of
// dimensions than x or is larger than x in a dimension other than `dim`.
TENON_API Tensor gather(const Tensor& x, int64_t dim, const Tensor& index);

}  // namespace tenon
