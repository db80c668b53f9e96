// Softmax along one dimension. Floating types; integers become f32. `dim` may be negative; IndexError where out of range.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon {

// exp(x - max) / sum(exp(x - max)) along dim; x's shape.
TENON_API Tensor softmax(const Tensor& x, int64_t dim);
// The logarithm of softmax, without underflow.
TENON_API Tensor log_softmax(const Tensor& x, int64_t dim);

}  // namespace tenon
