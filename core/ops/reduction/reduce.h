// What the reductions share: the result's shape, and the way in.
#pragma once

#include <tenon/core/dispatch/op.h>

namespace tenon {

// `shape` without `dims`, which are sorted.
Shape reduced_shape(const Shape& shape, const Shape& dims);
// Output of input 0's type, which is floating, without the attribute `dims`.
void infer_reduced_floating(Infer& infer);
// Runs `op` over `dims` as users give them: negative ones count from the end, none stands for all.
Tensor reduce(const Op& op, const Tensor& x, const Shape& dims, bool keepdim);

}  // namespace tenon
