// Operators that compute each element on its own.
//
// Shapes: a function of one tensor returns its shape. A function of several tensors broadcasts them
// as NumPy does, returns the broadcast shape, and throws a ShapeError that names the shapes if they
// do not broadcast.
//
// Dtypes: two different dtypes are promoted as PyTorch promotes them: `int_tensor + 1` stays an
// integer tensor, and `int_tensor + 1.5` becomes f32. Functions whose results are not whole numbers
// (exp, sqrt, sigmoid, div, …) convert integers and bool to f32. Of two bool tensors, add and
// maximum return "or", mul and minimum "and"; other arithmetic on bool alone is a DTypeError.
//
// Numbers: an operand may be a number. Beside a floating tensor it takes that tensor's dtype.
// Beside integers and bool a floating number makes both f32, and beside bool an integer makes both
// i64.
//
// Every function throws a ValueError for an undefined tensor.
#pragma once

#include <optional>
#include <string_view>

#include <tenon/core/number.h>
#include <tenon/core/tensor.h>

namespace tenon {

// ---- functions of one tensor that keep its dtype; DTypeError for bool ----

// Returns -x.
TENON_API Tensor neg(const Tensor& x);
// Returns |x|. The gradient at 0 is 0.
TENON_API Tensor abs(const Tensor& x);
// Returns -1, 0 or 1 as x is negative, 0 or positive; the sign of NaN is 0, as in PyTorch. The
// gradient is 0.
TENON_API Tensor sign(const Tensor& x);
// Returns x * x.
TENON_API Tensor square(const Tensor& x);
// Returns max(x, 0). The gradient at 0 is 0.
TENON_API Tensor relu(const Tensor& x);
// Returns the largest whole number that is not above x; integers are returned as they are. The
// gradient is 0.
TENON_API Tensor floor(const Tensor& x);
// Returns the smallest whole number that is not below x; integers are returned as they are. The
// gradient is 0.
TENON_API Tensor ceil(const Tensor& x);
// Returns the nearest whole number, the even one if two are equally near; integers are returned as
// they are. The gradient is 0.
TENON_API Tensor round(const Tensor& x);
// Returns x with elements below min replaced by min and those above max by max; one bound may be
// absent. NaN stays NaN, and a bound that is NaN makes every element NaN. A floating bound converts
// integers and bool to f32. The gradient is that of x strictly between the bounds and 0 elsewhere.
// Throws a ValueError if both are absent.
TENON_API Tensor clamp(const Tensor& x, std::optional<Number> min,
                       std::optional<Number> max = std::nullopt);

// ---- functions of one tensor with floating results: integers and bool become f32 ----

// Returns 1 / x.
TENON_API Tensor reciprocal(const Tensor& x);
// Returns e^x.
TENON_API Tensor exp(const Tensor& x);
// Returns the natural logarithm of x: -infinity at 0 and NaN below.
TENON_API Tensor log(const Tensor& x);
// Returns the square root of x, NaN below 0.
TENON_API Tensor sqrt(const Tensor& x);
// Returns 1 / sqrt(x).
TENON_API Tensor rsqrt(const Tensor& x);
// Returns the sine of x in radians.
TENON_API Tensor sin(const Tensor& x);
// Returns the cosine of x in radians.
TENON_API Tensor cos(const Tensor& x);
// Returns the error function 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.
TENON_API Tensor erf(const Tensor& x);
// Returns the hyperbolic tangent of x.
TENON_API Tensor tanh(const Tensor& x);
// Returns 1 / (1 + exp(-x)).
TENON_API Tensor sigmoid(const Tensor& x);
// Returns x * sigmoid(x) (Elfwing et al., arXiv:1702.03118).
TENON_API Tensor silu(const Tensor& x);
// Returns x * Phi(x), where Phi is the distribution function of the standard normal distribution
// (Hendrycks and Gimpel, arXiv:1606.08415). `approximate` is "none", which computes Phi by erf, or
// "tanh", a formula of that paper. Throws a ValueError for any other word.
TENON_API Tensor gelu(const Tensor& x, std::string_view approximate = "none");

// ---- arithmetic on two operands ----

// Returns a + b.
TENON_API Tensor add(const Tensor& a, const Tensor& b);
// The same with a number as b.
TENON_API Tensor add(const Tensor& a, Number b);
// Returns a - b. Throws a DTypeError if both are bool.
TENON_API Tensor sub(const Tensor& a, const Tensor& b);
// The same with a number as b.
TENON_API Tensor sub(const Tensor& a, Number b);
// The same with a number as a.
TENON_API Tensor sub(Number a, const Tensor& b);
// Returns a * b.
TENON_API Tensor mul(const Tensor& a, const Tensor& b);
// The same with a number as b.
TENON_API Tensor mul(const Tensor& a, Number b);
// Returns a / b; integers and bool become f32.
TENON_API Tensor div(const Tensor& a, const Tensor& b);
// The same with a number as b.
TENON_API Tensor div(const Tensor& a, Number b);
// The same with a number as a.
TENON_API Tensor div(Number a, const Tensor& b);
// Returns the larger of a and b, or NaN if one of them is NaN. Equal elements share the gradient
// evenly; where one is NaN, both get all of it, as in PyTorch.
TENON_API Tensor maximum(const Tensor& a, const Tensor& b);
// The same with a number as b. Throws a ValueError if the integer dtype in which they are compared
// does not hold the number.
TENON_API Tensor maximum(const Tensor& a, Number b);
// Returns the smaller of a and b, or NaN if one of them is NaN. The gradient is shared as that of
// maximum.
TENON_API Tensor minimum(const Tensor& a, const Tensor& b);
// The same with a number as b. Throws as maximum.
TENON_API Tensor minimum(const Tensor& a, Number b);
// Returns a^b. If both are integers, so is the result: it is exact and wraps around like their
// product, and a negative exponent gives 0 except for the bases 1 and -1. Throws a DTypeError if
// both tensors are bool.
TENON_API Tensor pow(const Tensor& a, const Tensor& b);
// The same with a number as b. Throws a ValueError for an integer or bool tensor and a negative
// integer.
TENON_API Tensor pow(const Tensor& a, Number b);
// The same with a number as a.
TENON_API Tensor pow(Number a, const Tensor& b);

// ---- comparisons and logic: bool results without a gradient ----

// Comparisons of an integer tensor with a number throw a ValueError if the dtype in which they are
// compared does not hold the number, as -1 and 256 of u8: convert the tensor with .to(i64).

// Returns a == b; NaN equals nothing.
TENON_API Tensor eq(const Tensor& a, const Tensor& b);
// The same with a number as b.
TENON_API Tensor eq(const Tensor& a, Number b);
// Returns a != b, which is true where one is NaN.
TENON_API Tensor ne(const Tensor& a, const Tensor& b);
// The same with a number as b.
TENON_API Tensor ne(const Tensor& a, Number b);
// Returns a < b, which is false where one is NaN.
TENON_API Tensor lt(const Tensor& a, const Tensor& b);
// The same with a number as b.
TENON_API Tensor lt(const Tensor& a, Number b);
// Returns a <= b, which is false where one is NaN.
TENON_API Tensor le(const Tensor& a, const Tensor& b);
// The same with a number as b.
TENON_API Tensor le(const Tensor& a, Number b);
// Returns a > b, which is false where one is NaN.
TENON_API Tensor gt(const Tensor& a, const Tensor& b);
// The same with a number as b.
TENON_API Tensor gt(const Tensor& a, Number b);
// Returns a >= b, which is false where one is NaN.
TENON_API Tensor ge(const Tensor& a, const Tensor& b);
// The same with a number as b.
TENON_API Tensor ge(const Tensor& a, Number b);
// Returns whether x is false, that is, 0. It takes every dtype.
TENON_API Tensor logical_not(const Tensor& x);
// Returns whether both are true; an element is true if it is not 0.
TENON_API Tensor logical_and(const Tensor& a, const Tensor& b);
// Returns whether at least one is true; an element is true if it is not 0.
TENON_API Tensor logical_or(const Tensor& a, const Tensor& b);
// Returns whether exactly one is true; an element is true if it is not 0.
TENON_API Tensor logical_xor(const Tensor& a, const Tensor& b);

// Returns a where the condition is true and b elsewhere; all three broadcast. Throws a DTypeError
// unless the condition is bool.
TENON_API Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
// The same with a number as b. Throws a ValueError if the result's dtype does not hold the number.
TENON_API Tensor where(const Tensor& condition, const Tensor& a, Number b);
// The same with a number as a. Throws a ValueError if the result's dtype does not hold the number.
TENON_API Tensor where(const Tensor& condition, Number a, const Tensor& b);
// The same with two numbers. The result is i64 for integers, bool for bool, and otherwise f32.
TENON_API Tensor where(const Tensor& condition, Number a, Number b);

// ---- the same as operators of the language ----

// Returns neg(x).
inline Tensor operator-(const Tensor& x) { return neg(x); }
// Return add(a, b), also with a number on either side.
inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator+(const Tensor& a, Number b) { return add(a, b); }
inline Tensor operator+(Number a, const Tensor& b) { return add(b, a); }
// Return sub(a, b), also with a number on either side.
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator-(const Tensor& a, Number b) { return sub(a, b); }
inline Tensor operator-(Number a, const Tensor& b) { return sub(a, b); }
// Return mul(a, b), also with a number on either side.
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator*(const Tensor& a, Number b) { return mul(a, b); }
inline Tensor operator*(Number a, const Tensor& b) { return mul(b, a); }
// Return div(a, b), also with a number on either side.
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator/(const Tensor& a, Number b) { return div(a, b); }
inline Tensor operator/(Number a, const Tensor& b) { return div(a, b); }

// Comparisons of the language compare element by element, as the functions do. A tensor is not a
// truth value, so `if (a == b)` does not compile: equal(a, b) compares whole tensors, and
// a.is_same(b) compares handles. Therefore containers of tensors cannot be compared by == either.

// Return eq(a, b), also with a number on either side.
inline Tensor operator==(const Tensor& a, const Tensor& b) { return eq(a, b); }
inline Tensor operator==(const Tensor& a, Number b) { return eq(a, b); }
inline Tensor operator==(Number a, const Tensor& b) { return eq(b, a); }
// Return ne(a, b), also with a number on either side.
inline Tensor operator!=(const Tensor& a, const Tensor& b) { return ne(a, b); }
inline Tensor operator!=(const Tensor& a, Number b) { return ne(a, b); }
inline Tensor operator!=(Number a, const Tensor& b) { return ne(b, a); }
// Return lt(a, b), also with a number on either side.
inline Tensor operator<(const Tensor& a, const Tensor& b) { return lt(a, b); }
inline Tensor operator<(const Tensor& a, Number b) { return lt(a, b); }
inline Tensor operator<(Number a, const Tensor& b) { return gt(b, a); }
// Return le(a, b), also with a number on either side.
inline Tensor operator<=(const Tensor& a, const Tensor& b) { return le(a, b); }
inline Tensor operator<=(const Tensor& a, Number b) { return le(a, b); }
inline Tensor operator<=(Number a, const Tensor& b) { return ge(b, a); }
// Return gt(a, b), also with a number on either side.
inline Tensor operator>(const Tensor& a, const Tensor& b) { return gt(a, b); }
inline Tensor operator>(const Tensor& a, Number b) { return gt(a, b); }
inline Tensor operator>(Number a, const Tensor& b) { return lt(b, a); }
// Return ge(a, b), also with a number on either side.
inline Tensor operator>=(const Tensor& a, const Tensor& b) { return ge(a, b); }
inline Tensor operator>=(const Tensor& a, Number b) { return ge(a, b); }
inline Tensor operator>=(Number a, const Tensor& b) { return le(b, a); }

// Returns logical_not(x).
inline Tensor operator!(const Tensor& x) { return logical_not(x); }
// Returns logical_and(a, b). Unlike that of C++, it computes both sides.
inline Tensor operator&&(const Tensor& a, const Tensor& b) { return logical_and(a, b); }
// Returns logical_or(a, b). Unlike that of C++, it computes both sides.
inline Tensor operator||(const Tensor& a, const Tensor& b) { return logical_or(a, b); }

}  // namespace tenon
