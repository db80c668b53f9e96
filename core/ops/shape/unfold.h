// Windows along one dimension that may be dilated, for other operators.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon {

// Returns the windows of `size` elements along `dim` (not negative) that begin every `step`
// elements, as a view like that of Tensor::unfold. The elements of a window are `dilation` apart;
// it has to fit.
Tensor unfold_dim(const Tensor& x, int64_t dim, int64_t size, int64_t step, int64_t dilation);

// Returns the sums of such windows at their places in a tensor of `shape`: the gradient of
// unfold_dim, whose result x is like.
Tensor fold_dim(const Tensor& x, const Shape& shape, int64_t dim, int64_t step, int64_t dilation);

}  // namespace tenon
