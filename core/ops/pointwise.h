// Operators on each element. Two-operand ones broadcast as NumPy does and promote types as PyTorch
// does.
//
// Shapes: a one-operand function returns its argument's shape, a two-operand one the broadcast
// shape (ShapeError names both). Types: functions with results that are no integers (exp, sqrt,
// sigmoid, div, …) turn integer and bool arguments into f32. `int_tensor + 1` stays an integer
// tensor, `int_tensor + 1.5` becomes f32. An undefined tensor is a ValueError.
#pragma once

#include <optional>
#include <string_view>

#include <tenon/core/number.h>
#include <tenon/core/tensor.h>

namespace tenon {

// ---- one operand ----
TENON_API Tensor neg(const Tensor& x);
TENON_API Tensor abs(const Tensor& x);   // gradient 0 at 0
TENON_API Tensor sign(const Tensor& x);  // -1, 0 or 1; 0 for NaN, as in PyTorch
TENON_API Tensor square(const Tensor& x);
TENON_API Tensor reciprocal(const Tensor& x);
TENON_API Tensor exp(const Tensor& x);
TENON_API Tensor log(const Tensor& x);
TENON_API Tensor sqrt(const Tensor& x);
TENON_API Tensor rsqrt(const Tensor& x);
TENON_API Tensor sin(const Tensor& x);
TENON_API Tensor cos(const Tensor& x);
TENON_API Tensor erf(const Tensor& x);
TENON_API Tensor tanh(const Tensor& x);
TENON_API Tensor sigmoid(const Tensor& x);
TENON_API Tensor relu(const Tensor& x);  // gradient 0 at 0
TENON_API Tensor silu(const Tensor& x);  // x * sigmoid(x)
// x * Phi(x), Phi the normal distribution (Hendrycks and Gimpel, arXiv:1606.08415). `approximate`
// is "none" (erf) or "tanh".
TENON_API Tensor gelu(const Tensor& x, std::string_view approximate = "none");
TENON_API Tensor
floor(const Tensor& x);  // integers are returned as they are; likewise ceil and round
TENON_API Tensor ceil(const Tensor& x);
TENON_API Tensor round(const Tensor& x);        // halves to even
TENON_API Tensor logical_not(const Tensor& x);  // bool
// min <= result <= max; an absent bound does not bind. NaN stays, and a bound that is NaN makes all
// NaN. A floating bound makes whole numbers f32. The gradient is that of x strictly between the
// bounds, else 0. ValueError where both are absent.
TENON_API Tensor clamp(const Tensor& x, std::optional<Number> min,
                       std::optional<Number> max = std::nullopt);

// ---- two operands ----
TENON_API Tensor add(const Tensor& a, const Tensor& b);
TENON_API Tensor add(const Tensor& a, Number b);
TENON_API Tensor sub(const Tensor& a, const Tensor& b);
TENON_API Tensor sub(const Tensor& a, Number b);
TENON_API Tensor sub(Number a, const Tensor& b);
TENON_API Tensor mul(const Tensor& a, const Tensor& b);
TENON_API Tensor mul(const Tensor& a, Number b);
TENON_API Tensor div(const Tensor& a, const Tensor& b);  // true division: integers give f32
TENON_API Tensor div(const Tensor& a, Number b);
TENON_API Tensor div(Number a, const Tensor& b);
// NaN is passed on. Equal elements share the gradient; where one is NaN, both get all of it.
TENON_API Tensor maximum(const Tensor& a, const Tensor& b);
TENON_API Tensor maximum(const Tensor& a, Number b);
TENON_API Tensor minimum(const Tensor& a, const Tensor& b);
TENON_API Tensor minimum(const Tensor& a, Number b);
// Whole where both are whole: exact, but for what wraps around; of negative elements as exponents,
// 0 but for bases 1 and -1. ValueError where a whole exponent that is a number is negative and `a`
// is whole; DTypeError where both are bool.
TENON_API Tensor pow(const Tensor& a, const Tensor& b);
TENON_API Tensor pow(const Tensor& a, Number b);
TENON_API Tensor pow(Number a, const Tensor& b);

// ---- comparisons: bool results, no gradient ----
TENON_API Tensor eq(const Tensor& a, const Tensor& b);
TENON_API Tensor eq(const Tensor& a, Number b);
TENON_API Tensor ne(const Tensor& a, const Tensor& b);
TENON_API Tensor ne(const Tensor& a, Number b);
TENON_API Tensor lt(const Tensor& a, const Tensor& b);
TENON_API Tensor lt(const Tensor& a, Number b);
TENON_API Tensor le(const Tensor& a, const Tensor& b);
TENON_API Tensor le(const Tensor& a, Number b);
TENON_API Tensor gt(const Tensor& a, const Tensor& b);
TENON_API Tensor gt(const Tensor& a, Number b);
TENON_API Tensor ge(const Tensor& a, const Tensor& b);
TENON_API Tensor ge(const Tensor& a, Number b);
// Of truth values: an element that is not 0 counts as true.
TENON_API Tensor logical_and(const Tensor& a, const Tensor& b);
TENON_API Tensor logical_or(const Tensor& a, const Tensor& b);
TENON_API Tensor logical_xor(const Tensor& a, const Tensor& b);

// a where the condition holds, b elsewhere. `condition` is bool (DTypeError otherwise); all three
// broadcast.
TENON_API Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
TENON_API Tensor where(const Tensor& condition, const Tensor& a, Number b);
TENON_API Tensor where(const Tensor& condition, Number a, const Tensor& b);

inline Tensor operator-(const Tensor& x) { return neg(x); }
inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator+(const Tensor& a, Number b) { return add(a, b); }
inline Tensor operator+(Number a, const Tensor& b) { return add(b, a); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator-(const Tensor& a, Number b) { return sub(a, b); }
inline Tensor operator-(Number a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator*(const Tensor& a, Number b) { return mul(a, b); }
inline Tensor operator*(Number a, const Tensor& b) { return mul(b, a); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator/(const Tensor& a, Number b) { return div(a, b); }
inline Tensor operator/(Number a, const Tensor& b) { return div(a, b); }

// == and != are left alone: a tensor is no truth value. Use eq, ne, or Tensor::is_same.
inline Tensor operator<(const Tensor& a, const Tensor& b) { return lt(a, b); }
inline Tensor operator<(const Tensor& a, Number b) { return lt(a, b); }
inline Tensor operator<(Number a, const Tensor& b) { return gt(b, a); }
inline Tensor operator<=(const Tensor& a, const Tensor& b) { return le(a, b); }
inline Tensor operator<=(const Tensor& a, Number b) { return le(a, b); }
inline Tensor operator<=(Number a, const Tensor& b) { return ge(b, a); }
inline Tensor operator>(const Tensor& a, const Tensor& b) { return gt(a, b); }
inline Tensor operator>(const Tensor& a, Number b) { return gt(a, b); }
inline Tensor operator>(Number a, const Tensor& b) { return lt(b, a); }
inline Tensor operator>=(const Tensor& a, const Tensor& b) { return ge(a, b); }
inline Tensor operator>=(const Tensor& a, Number b) { return ge(a, b); }
inline Tensor operator>=(Number a, const Tensor& b) { return le(b, a); }

}  // namespace tenon
