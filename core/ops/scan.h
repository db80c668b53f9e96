// Cumulative operators along one dimension, and differences. Element i of a cumulative result,
// which has the shape of x, is made of the elements 0 to i of x; from a NaN on, it is NaN.
//
// `dim` may be negative; a tensor without dimensions takes 0 and -1. Every function throws an
// IndexError if x has no such dimension, and a ValueError for an undefined tensor. f16 and bf16 are
// computed in f32 and rounded.
#pragma once

#include <optional>

#include <tenon/core/ops/reduction.h>
#include <tenon/core/tensor.h>

namespace tenon {

// Returns the sums of the elements so far, in i64 for integers and bool. With a `dtype`, x is
// converted to it first, and the result has it.
TENON_API Tensor cumsum(const Tensor& x, int64_t dim, std::optional<DType> dtype = std::nullopt);
// Returns the products of the elements so far, in i64 for integers and bool, or in `dtype` as
// cumsum. The gradient divides by no element, so that it is right where some are 0.
TENON_API Tensor cumprod(const Tensor& x, int64_t dim, std::optional<DType> dtype = std::nullopt);
// Returns log(cumsum(exp(x))), computed without overflow; integers and bool become f32.
TENON_API Tensor logcumsumexp(const Tensor& x, int64_t dim);
// Returns the largest element so far and where it lies (i64), the last of equal ones. A NaN is
// larger than every number. The gradient goes to the element at that place.
TENON_API ValuesIndices cummax(const Tensor& x, int64_t dim);
// Returns the smallest element so far and where it lies (i64), the last of equal ones. A NaN is
// smaller than every number. The gradient goes to the element at that place.
TENON_API ValuesIndices cummin(const Tensor& x, int64_t dim);

// Returns the n-th differences of neighbors along `dim`, x[i + 1] - x[i] for n = 1; for bool,
// whether they differ. `prepend` and `append`, where they are defined, are first joined to x in
// front and behind; they have its shape except in `dim`, or no dimensions, which stands for one
// slice of that value. The result has n slices less along `dim`, or none. Throws a ValueError if n
// is negative and a ShapeError if x has no dimensions.
TENON_API Tensor diff(const Tensor& x, int64_t n = 1, int64_t dim = -1, const Tensor& prepend = {},
                      const Tensor& append = {});

}  // namespace tenon
