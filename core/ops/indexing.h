// Picking by index. Indices are i64 or i32 (DTypeError otherwise) and never negative; one out of
// range is an IndexError of the queued work, seen at the next wait, that names position, index and
// bound.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon {

// Rows of weight (v, d): indices (…) give (…, d). Row padding_idx gets no gradient; -1: every row
// does.
TENON_API Tensor embedding(const Tensor& indices, const Tensor& weight, int64_t padding_idx = -1);
// Slices of x along dim, in the order of index (k); the result has size k there.
TENON_API Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index);
// result[i][j][k] = x[index[i][j][k]][j][k] for dim 0. index has x's rank and is nowhere larger,
// but along dim; the result has its shape.
TENON_API Tensor gather(const Tensor& x, int64_t dim, const Tensor& index);

}  // namespace tenon
