// Reductions over dimensions. `dims` may be negative; empty means all. Shape of the result: x's
// without `dims`, or with 1 in their place where keepdim is set. NaN is passed on. IndexError for
// dims out of range, ValueError for one that is named twice.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon {

// Integers and bool sum up and multiply to i64. Of nothing: 0 and 1.
TENON_API Tensor sum(const Tensor& x);
TENON_API Tensor sum(const Tensor& x, const Shape& dims, bool keepdim = false);
TENON_API Tensor prod(const Tensor& x);
TENON_API Tensor prod(const Tensor& x, const Shape& dims, bool keepdim = false);
// Floating types only (DTypeError). Of nothing: NaN.
TENON_API Tensor mean(const Tensor& x);
TENON_API Tensor mean(const Tensor& x, const Shape& dims, bool keepdim = false);
// ValueError where there is nothing to choose from. Equal elements share the gradient.
TENON_API Tensor amax(const Tensor& x);
TENON_API Tensor amax(const Tensor& x, const Shape& dims, bool keepdim = false);
TENON_API Tensor amin(const Tensor& x);
TENON_API Tensor amin(const Tensor& x, const Shape& dims, bool keepdim = false);
// Mean squared deviation, divided by n - correction. The gradient of std at 0 is 0. Call it as
// tenon::std.
TENON_API Tensor var(const Tensor& x, const Shape& dims = {}, int64_t correction = 1,
                     bool keepdim = false);
TENON_API Tensor std(const Tensor& x, const Shape& dims = {}, int64_t correction = 1,
                     bool keepdim = false);
// log(sum(exp(x))) without overflow.
TENON_API Tensor logsumexp(const Tensor& x, const Shape& dims, bool keepdim = false);
// (sum |x|^p)^(1/p); p may be infinite, and 0 counts elements that are not 0. The gradient at a
// norm of 0, and of an element that is 0, is 0.
TENON_API Tensor norm(const Tensor& x, double p = 2);
TENON_API Tensor norm(const Tensor& x, double p, const Shape& dims, bool keepdim = false);
// Position of the first largest or smallest element, i64: in the flattened tensor, or along `dim`.
// ValueError of nothing.
TENON_API Tensor argmax(const Tensor& x);
TENON_API Tensor argmax(const Tensor& x, int64_t dim, bool keepdim = false);
TENON_API Tensor argmin(const Tensor& x);
TENON_API Tensor argmin(const Tensor& x, int64_t dim, bool keepdim = false);
// bool; elements that are not 0 count as true. Of nothing: false and true.
TENON_API Tensor any(const Tensor& x);
TENON_API Tensor any(const Tensor& x, const Shape& dims, bool keepdim = false);
TENON_API Tensor all(const Tensor& x);
TENON_API Tensor all(const Tensor& x, const Shape& dims, bool keepdim = false);

}  // namespace tenon
