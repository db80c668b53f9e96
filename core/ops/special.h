// Elementary and special functions beside those of core/ops/pointwise.h. Each computes every
// element on its own and returns a tensor of x's shape and dtype, except that integers and bool
// become f32. Functions of two tensors broadcast their shapes, or it is a ShapeError, and promote
// their dtypes. An undefined tensor is a ValueError.
#pragma once

#include <optional>

#include <tenon/core/number.h>
#include <tenon/core/tensor.h>

namespace tenon {

// ---- exponentials and logarithms ----

// Returns e^x - 1, precise near 0.
TENON_API Tensor expm1(const Tensor& x);
// Returns log(1 + x), precise near 0: -infinity at -1 and NaN below.
TENON_API Tensor log1p(const Tensor& x);
// Returns 2^x.
TENON_API Tensor exp2(const Tensor& x);
// Returns the logarithm of x to the base 2: -infinity at 0 and NaN below.
TENON_API Tensor log2(const Tensor& x);
// Returns the logarithm of x to the base 10: -infinity at 0 and NaN below.
TENON_API Tensor log10(const Tensor& x);
// Returns log(x / (1 - x)): -infinity at 0, infinity at 1 and NaN outside. With `eps`, x is first
// brought within [eps, 1 - eps], and the gradient outside is 0; as in PyTorch, a negative eps
// stands for none.
TENON_API Tensor logit(const Tensor& x, std::optional<double> eps = std::nullopt);
// Returns log(exp(a) + exp(b)) without overflow.
TENON_API Tensor logaddexp(const Tensor& a, const Tensor& b);
// Returns x log(y), and 0 where x is 0 and y is not NaN.
TENON_API Tensor xlogy(const Tensor& x, const Tensor& y);
// The same with a number as y.
TENON_API Tensor xlogy(const Tensor& x, Number y);
// The same with a number as x.
TENON_API Tensor xlogy(Number x, const Tensor& y);

// ---- trigonometric and hyperbolic functions ----

// Returns the tangent of x in radians.
TENON_API Tensor tan(const Tensor& x);
// Returns the angle in [-pi/2, pi/2] whose sine is x, NaN outside [-1, 1].
TENON_API Tensor asin(const Tensor& x);
// Returns the angle in [0, pi] whose cosine is x, NaN outside [-1, 1].
TENON_API Tensor acos(const Tensor& x);
// Returns the angle in [-pi/2, pi/2] whose tangent is x.
TENON_API Tensor atan(const Tensor& x);
// Returns the angle in [-pi, pi] of the point (x, y).
TENON_API Tensor atan2(const Tensor& y, const Tensor& x);
// Returns (exp(x) - exp(-x)) / 2.
TENON_API Tensor sinh(const Tensor& x);
// Returns (exp(x) + exp(-x)) / 2.
TENON_API Tensor cosh(const Tensor& x);
// Returns the number whose sinh is x.
TENON_API Tensor asinh(const Tensor& x);
// Returns the number whose cosh is x and which is not negative, NaN below 1.
TENON_API Tensor acosh(const Tensor& x);
// Returns the number whose tanh is x: infinite at 1 and -1, NaN beyond.
TENON_API Tensor atanh(const Tensor& x);
// Returns sin(pi x) / (pi x), and 1 at 0.
TENON_API Tensor sinc(const Tensor& x);
// Returns sqrt(a^2 + b^2) without overflow.
TENON_API Tensor hypot(const Tensor& a, const Tensor& b);

// ---- special functions ----

// Returns 1 - erf(x), precise where that is small.
TENON_API Tensor erfc(const Tensor& x);
// Returns the number whose erf is x: infinite at 1 and -1, NaN beyond.
TENON_API Tensor erfinv(const Tensor& x);
// Returns log |gamma(x)|: infinite at 0, -1, -2, …
TENON_API Tensor lgamma(const Tensor& x);
// Returns the derivative of log |gamma(x)|: infinite at 0, NaN at -1, -2, …
TENON_API Tensor digamma(const Tensor& x);
// Returns the n-th derivative of digamma. Throws a ValueError unless n is in [0, 100].
TENON_API Tensor polygamma(int64_t n, const Tensor& x);

}  // namespace tenon
