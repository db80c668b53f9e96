// Arithmetic beside that of core/ops/pointwise.h: rounding, division with a remainder, three
// operands, bits, and what kind of number an element is. Shapes, dtypes and numbers as operands are
// treated as there: shapes broadcast, or it is a ShapeError, and two dtypes are promoted, unless a
// function says otherwise. An undefined tensor is a ValueError.
#pragma once

#include <optional>
#include <string_view>

#include <tenon/core/number.h>
#include <tenon/core/tensor.h>

namespace tenon {

// ---- rounding ----

// Returns x rounded towards 0; integers are returned as they are. The gradient is 0. Throws a
// DTypeError for bool.
TENON_API Tensor trunc(const Tensor& x);
// Returns x - trunc(x), which has the sign of x. The gradient is that of x. Throws a DTypeError for
// bool.
TENON_API Tensor frac(const Tensor& x);
// Returns x with `nan` in place of NaN, and `posinf` and `neginf` in place of infinity and
// -infinity, by default the largest and the smallest number of the dtype. The gradient is that of x
// where x is finite and 0 elsewhere. Integers and bool are returned as they are.
TENON_API Tensor nan_to_num(const Tensor& x, double nan = 0.0,
                            std::optional<double> posinf = std::nullopt,
                            std::optional<double> neginf = std::nullopt);
// ---- division with a remainder ----

// Returns a / b rounded as PyTorch's `rounding_mode` says: "floor" (floor_divide) or "trunc",
// towards 0. Integers stay integers; the gradient is 0. Throws a ValueError for any other word, and
// a DTypeError if both are bool.
TENON_API Tensor div(const Tensor& a, const Tensor& b, std::string_view rounding_mode);
// The same with a number as b. Throws as floor_divide.
TENON_API Tensor div(const Tensor& a, Number b, std::string_view rounding_mode);
// Returns the largest whole number that is not above a / b; the gradient is 0. Of integers it is
// an integer, and 0 where b is 0 (as in NumPy). Throws a DTypeError if both are bool.
TENON_API Tensor floor_divide(const Tensor& a, const Tensor& b);
// The same with a number as b. Throws a ValueError if integers are divided by 0, or by a number
// that their dtype does not hold.
TENON_API Tensor floor_divide(const Tensor& a, Number b);
// Returns a - b floor(a / b), which has the sign of b (Python's %). Of integers it is 0 where b is
// 0. Throws a DTypeError if both are bool.
TENON_API Tensor remainder(const Tensor& a, const Tensor& b);
// The same with a number as b. Throws as floor_divide.
TENON_API Tensor remainder(const Tensor& a, Number b);
// The same with a number as a.
TENON_API Tensor remainder(Number a, const Tensor& b);
// Returns a - b trunc(a / b), which has the sign of a (C's %). Of integers it is 0 where b is 0.
// Throws a DTypeError if both are bool.
TENON_API Tensor fmod(const Tensor& a, const Tensor& b);
// The same with a number as b. Throws as floor_divide.
TENON_API Tensor fmod(const Tensor& a, Number b);
// Returns |a| with the sign of b, that of 0 and NaN included; integers and bool become f32.
TENON_API Tensor copysign(const Tensor& a, const Tensor& b);
// The same with a number as b.
TENON_API Tensor copysign(const Tensor& a, Number b);
// Returns 0 where x is below 0 or NaN, 1 above, and the element of `values` at 0. It has no
// gradient. Throws a DTypeError for two dtypes.
TENON_API Tensor heaviside(const Tensor& x, const Tensor& values);

// ---- arithmetic on three operands ----

// Returns a + weight (end - a); all three tensors broadcast. Throws a DTypeError unless they have
// one floating dtype.
TENON_API Tensor lerp(const Tensor& a, const Tensor& end, const Tensor& weight);
// The same with one weight for all elements.
TENON_API Tensor lerp(const Tensor& a, const Tensor& end, double weight);
// Returns x + value a b; all three tensors broadcast. Throws a DTypeError unless they have one
// dtype other than bool, or for integers and a floating value, and a ValueError for a value that an
// integer dtype does not hold.
TENON_API Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, Number value = 1);
// Returns x + value a / b; all three tensors broadcast. Throws a DTypeError unless they have one
// floating dtype.
TENON_API Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, Number value = 1);

// ---- bits ----

// The functions of this part throw a DTypeError for floating operands and, with a number, a
// ValueError if the integer dtype in which they compute does not hold it. The first four take
// integers, and bool, for which they are logic; shifts take integers alone.

// Returns the bits that are set in both a and b.
TENON_API Tensor bitwise_and(const Tensor& a, const Tensor& b);
// The same with a number as b.
TENON_API Tensor bitwise_and(const Tensor& a, Number b);
// Returns the bits that are set in a, in b or in both.
TENON_API Tensor bitwise_or(const Tensor& a, const Tensor& b);
// The same with a number as b.
TENON_API Tensor bitwise_or(const Tensor& a, Number b);
// Returns the bits that are set in exactly one of a and b.
TENON_API Tensor bitwise_xor(const Tensor& a, const Tensor& b);
// The same with a number as b.
TENON_API Tensor bitwise_xor(const Tensor& a, Number b);
// Returns x with every bit inverted; of bool, logical_not(x).
TENON_API Tensor bitwise_not(const Tensor& x);
// Returns a 2^b without the bits that do not fit: 0 where b is negative or not below the number of
// bits of the dtype.
TENON_API Tensor bitwise_left_shift(const Tensor& a, const Tensor& b);
// The same with a number as b.
TENON_API Tensor bitwise_left_shift(const Tensor& a, Number b);
// Returns a / 2^b rounded down. Where b is negative or not below the number of bits of the dtype,
// it is -1 if a is negative and 0 otherwise.
TENON_API Tensor bitwise_right_shift(const Tensor& a, const Tensor& b);
// The same with a number as b.
TENON_API Tensor bitwise_right_shift(const Tensor& a, Number b);

// Return bitwise_and(a, b), where b may be a number.
inline Tensor operator&(const Tensor& a, const Tensor& b) { return bitwise_and(a, b); }
inline Tensor operator&(const Tensor& a, Number b) { return bitwise_and(a, b); }
// Return bitwise_or(a, b), where b may be a number.
inline Tensor operator|(const Tensor& a, const Tensor& b) { return bitwise_or(a, b); }
inline Tensor operator|(const Tensor& a, Number b) { return bitwise_or(a, b); }
// Return bitwise_xor(a, b), where b may be a number.
inline Tensor operator^(const Tensor& a, const Tensor& b) { return bitwise_xor(a, b); }
inline Tensor operator^(const Tensor& a, Number b) { return bitwise_xor(a, b); }
// Returns bitwise_not(x).
inline Tensor operator~(const Tensor& x) { return bitwise_not(x); }
// Change a in place, as its methods bitwise_and_, bitwise_or_ and bitwise_xor_ do, and return it.
inline Tensor& operator&=(Tensor& a, const Tensor& b) { return a.bitwise_and_(b); }
inline Tensor& operator|=(Tensor& a, const Tensor& b) { return a.bitwise_or_(b); }
inline Tensor& operator^=(Tensor& a, const Tensor& b) { return a.bitwise_xor_(b); }
// Return remainder(a, b), where b may be a number.
inline Tensor operator%(const Tensor& a, const Tensor& b) { return remainder(a, b); }
inline Tensor operator%(const Tensor& a, Number b) { return remainder(a, b); }

// ---- what kind of number an element is, and whether tensors are the same ----

// Returns as bool whether each element is NaN, which those of integers and bool never are.
TENON_API Tensor isnan(const Tensor& x);
// Returns as bool whether each element is infinite or -infinite.
TENON_API Tensor isinf(const Tensor& x);
// Returns as bool whether each element is neither infinite nor NaN.
TENON_API Tensor isfinite(const Tensor& x);
// Returns as bool for each pair of elements whether |a - b| <= atol + rtol |b|, or a and b are
// equal, or both are NaN and `equal_nan` is true. Throws a DTypeError for two dtypes, and a
// ValueError for a tolerance that is negative or NaN.
TENON_API Tensor isclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8,
                         bool equal_nan = false);
// Returns whether isclose is true for all elements. Waits for the result. Throws as isclose.
TENON_API bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8,
                        bool equal_nan = false);
// Returns whether a and b have the same shape and equal elements; NaN equals nothing. Waits for the
// result. Throws a DTypeError for two dtypes.
TENON_API bool equal(const Tensor& a, const Tensor& b);

}  // namespace tenon
