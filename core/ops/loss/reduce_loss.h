// What losses share: how their values are combined, and a warning of shapes that differ.
#pragma once

#include <tenon/core/ops/loss.h>

namespace tenon {

// Throws a ValueError for Reduction::batchmean, which kl_div alone has.
void require_reduction(const char* op, Reduction reduction);
// Returns the values, their mean or their sum.
Tensor reduce_loss(const char* op, const Tensor& loss, Reduction reduction);
// Warns once for each pair of shapes that differ.
void warn_of_broadcasting(const char* op, const Tensor& x, const Tensor& y);

// Returns loss * weight, where there is a weight. Throws a ShapeError unless it has the shape of x.
Tensor weighted_loss(const char* op, const Tensor& loss, const Tensor& x, const Tensor& weight);

}  // namespace tenon
