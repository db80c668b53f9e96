// Reductions over dimensions.
//
// `dims` lists the dimensions to reduce, as `{0, 1}` or, if it is one, as `0`; a negative one
// counts from the end, and an empty list means all of them. The result has the shape of x without
// these dimensions, or with size 1 in their place if keepdim is true. A NaN among the elements
// makes a floating result NaN. Every function throws an IndexError for a dimension that x does not
// have, a ValueError for one that is listed twice or for an undefined tensor, and a DTypeError for
// a dtype that it does not take.
#pragma once

#include <concepts>
#include <optional>
#include <utility>

#include <tenon/core/number.h>
#include <tenon/core/tensor.h>

namespace tenon {

// Elements that were chosen along a dimension, and where they were (i64).
struct ValuesIndices {
  Tensor values, indices;
};

// Returns the sum of all elements, in i64 for integers and bool. An empty tensor sums to 0.
TENON_API Tensor sum(const Tensor& x);
// The same over some dimensions.
TENON_API Tensor sum(const Tensor& x, const Shape& dims, bool keepdim = false);
// Returns the sum of all elements in another dtype, to which x is converted first.
TENON_API Tensor sum(const Tensor& x, DType dtype);
// The same over some dimensions.
TENON_API Tensor sum(const Tensor& x, const Shape& dims, bool keepdim, DType dtype);

// Returns the sum of the elements that are not NaN, in i64 for integers and bool, or in `dtype`.
TENON_API Tensor nansum(const Tensor& x, const Shape& dims = {}, bool keepdim = false,
                        std::optional<DType> dtype = std::nullopt);
// Returns how many elements are not 0, as i64. NaN is not 0.
TENON_API Tensor count_nonzero(const Tensor& x, const Shape& dims = {});

// Returns the product of all elements, in i64 for integers and bool. The product of an empty tensor
// is 1.
TENON_API Tensor prod(const Tensor& x);
// The same over some dimensions.
TENON_API Tensor prod(const Tensor& x, const Shape& dims, bool keepdim = false);

// Returns the mean of all elements of a floating tensor. The mean of an empty tensor is NaN.
TENON_API Tensor mean(const Tensor& x);
// The same over some dimensions.
TENON_API Tensor mean(const Tensor& x, const Shape& dims, bool keepdim = false);
// Returns the mean of the elements of a floating tensor that are not NaN; NaN if there is none.
TENON_API Tensor nanmean(const Tensor& x, const Shape& dims = {}, bool keepdim = false);

// Returns the largest element of a floating or integer tensor. Equal largest elements share the
// gradient evenly. Throws a ValueError if there is no element to choose from.
TENON_API Tensor amax(const Tensor& x);
// The same over some dimensions.
TENON_API Tensor amax(const Tensor& x, const Shape& dims, bool keepdim = false);

// Returns the smallest element of a floating or integer tensor. Equal smallest elements share the
// gradient evenly. Throws a ValueError if there is no element to choose from.
TENON_API Tensor amin(const Tensor& x);
// The same over some dimensions.
TENON_API Tensor amin(const Tensor& x, const Shape& dims, bool keepdim = false);

// Returns the variance of a floating tensor: the sum of squared differences from the mean, divided
// by n - correction, where n is the number of reduced elements. The result is NaN or infinite if
// that divisor is not positive.
TENON_API Tensor var(const Tensor& x, const Shape& dims = {}, int64_t correction = 1,
                     bool keepdim = false);
template <std::same_as<bool> B>
Tensor var(const Tensor& x, const Shape& dims, B keepdim) = delete;  // give the correction first

// Returns the standard deviation of a floating tensor, the square root of var. Its gradient where
// the deviation is 0 is 0. Call it as tenon::std, because `std` alone is the standard library.
TENON_API Tensor std(const Tensor& x, const Shape& dims = {}, int64_t correction = 1,
                     bool keepdim = false);
template <std::same_as<bool> B>
Tensor std(const Tensor& x, const Shape& dims, B keepdim) = delete;  // give the correction first

// Returns the variance and the mean of a floating tensor, as var and mean do.
TENON_API std::pair<Tensor, Tensor> var_mean(const Tensor& x, const Shape& dims = {},
                                             int64_t correction = 1, bool keepdim = false);
// Returns the standard deviation and the mean of a floating tensor, as std and mean do.
TENON_API std::pair<Tensor, Tensor> std_mean(const Tensor& x, const Shape& dims = {},
                                             int64_t correction = 1, bool keepdim = false);

// Returns log(sum(exp(x))), computed without overflow; integers and bool become f32. The result for
// an empty tensor is -infinity.
TENON_API Tensor logsumexp(const Tensor& x, const Shape& dims, bool keepdim = false);

// Returns the p-norm (sum |x|^p)^(1/p), as torch.linalg.vector_norm does; integers and bool become
// f32. An infinite p gives the largest absolute value, minus infinity the smallest, and p = 0 the
// number of elements that are not 0, NaN among them. The gradient is 0 where the norm or the
// element is 0. Throws a ValueError if p is NaN, or if p is infinite and there is no element to
// choose from.
TENON_API Tensor norm(const Tensor& x, double p = 2);
// The same over some dimensions.
TENON_API Tensor norm(const Tensor& x, double p, const Shape& dims, bool keepdim = false);

// Returns norm(a - b, p), a scalar, where a and b broadcast. Throws a ShapeError if they do not.
TENON_API Tensor dist(const Tensor& a, const Tensor& b, double p = 2);
// Returns x with each slice along `dim` whose p-norm is above maxnorm scaled down to it, in the
// shape and dtype of x. Throws a ValueError unless p is positive and maxnorm not negative, a
// DTypeError unless x is floating, and a ShapeError if x has less than two dimensions.
TENON_API Tensor renorm(const Tensor& x, double p, int64_t dim, double maxnorm);

// Returns the largest of all elements, as amax does, but takes bool, too.
TENON_API Tensor max(const Tensor& x);
// Returns the smallest of all elements, as amin does, but takes bool, too.
TENON_API Tensor min(const Tensor& x);
// Returns the largest element along `dim`, of any dtype, and where it lies: the first of equal
// ones, or of those that are NaN. The gradient goes to that element. Throws a ValueError if there
// is no element to choose from.
TENON_API ValuesIndices max(const Tensor& x, int64_t dim, bool keepdim = false);
// Returns the smallest element along `dim` and where it lies, by the same rules.
TENON_API ValuesIndices min(const Tensor& x, int64_t dim, bool keepdim = false);
// Returns maximum(a, b), the larger of two elements.
TENON_API Tensor max(const Tensor& a, const Tensor& b);
// Returns minimum(a, b), the smaller of two elements.
TENON_API Tensor min(const Tensor& a, const Tensor& b);
// Returns the smallest and the largest element, of all or along `dim`, as amin and amax do, but
// takes bool, too.
TENON_API std::pair<Tensor, Tensor> aminmax(const Tensor& x,
                                            std::optional<int64_t> dim = std::nullopt,
                                            bool keepdim = false);

// Returns the position of the largest element of a floating or integer tensor in the flattened
// tensor, as i64. The first of equal elements counts, and NaN counts as the largest. Throws a
// ValueError if there is no element to choose from.
TENON_API Tensor argmax(const Tensor& x);
// The same for each line along `dim`.
TENON_API Tensor argmax(const Tensor& x, int64_t dim, bool keepdim = false);

// Returns the position of the smallest element of a floating or integer tensor in the flattened
// tensor, as i64. The first of equal elements counts, and NaN counts as the smallest. Throws a
// ValueError if there is no element to choose from.
TENON_API Tensor argmin(const Tensor& x);
// The same for each line along `dim`.
TENON_API Tensor argmin(const Tensor& x, int64_t dim, bool keepdim = false);

// Returns as bool whether any element is true, that is, not 0; NaN is true. The result for an empty
// tensor is false.
TENON_API Tensor any(const Tensor& x);
// The same over some dimensions.
TENON_API Tensor any(const Tensor& x, const Shape& dims, bool keepdim = false);

// Returns as bool whether all elements are true, that is, not 0; NaN is true. The result for an
// empty tensor is true.
TENON_API Tensor all(const Tensor& x);
// The same over some dimensions.
TENON_API Tensor all(const Tensor& x, const Shape& dims, bool keepdim = false);

}  // namespace tenon
