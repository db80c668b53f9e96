// Arithmetic beside that of core/ops/pointwise.h: rounding, division with a remainder, three
// operands, bits, and what kind of number an element is. Shapes and dtypes are as there: shapes
// broadcast, two dtypes are promoted, and an undefined tensor is a ValueError.
#pragma once

#include <optional>
#include <string_view>

#include <tenon/core/number.h>
#include <tenon/core/tensor.h>

namespace tenon {

// ---- rounding ----

// Returns x without what is behind the point; integers are returned as they are. The gradient is 0.
TENON_API Tensor trunc(const Tensor& x);
// Returns what is behind the point, with the sign of x. The gradient is that of x.
TENON_API Tensor frac(const Tensor& x);
// Returns x with `nan` in place of NaN, and `posinf` and `neginf` in place of the infinities;
// without these two, the largest and the smallest number of the dtype. The gradient is that of x
// where x is finite and 0 elsewhere. Integers and bool are returned as they are.
TENON_API Tensor nan_to_num(const Tensor& x, double nan = 0.0,
                            std::optional<double> posinf = std::nullopt,
                            std::optional<double> neginf = std::nullopt);
// ---- division with a remainder ----

// Returns a / b rounded as PyTorch's `rounding_mode` says: "floor" (floor_divide) or "trunc",
// towards 0. Integers stay integers. Throws a ValueError for any other word.
TENON_API Tensor div(const Tensor& a, const Tensor& b, std::string_view rounding_mode);
TENON_API Tensor div(const Tensor& a, Number b, std::string_view rounding_mode);
// Returns the largest whole number that is not above a / b; the gradient is 0. Of integers it is
// an integer, and 0 where b is 0 (as in NumPy); a number 0 as b is a ValueError then.
TENON_API Tensor floor_divide(const Tensor& a, const Tensor& b);
TENON_API Tensor floor_divide(const Tensor& a, Number b);
// Returns a - b floor(a / b), which has the sign of b (Python's %). Of integers it is 0 where b is
// 0; a number 0 as b is a ValueError then.
TENON_API Tensor remainder(const Tensor& a, const Tensor& b);
TENON_API Tensor remainder(const Tensor& a, Number b);
TENON_API Tensor remainder(Number a, const Tensor& b);
// Returns a - b trunc(a / b), which has the sign of a (C's %). Integers as for remainder.
TENON_API Tensor fmod(const Tensor& a, const Tensor& b);
TENON_API Tensor fmod(const Tensor& a, Number b);
// Returns |a| with the sign of b, that of 0 and NaN included; integers and bool become f32.
TENON_API Tensor copysign(const Tensor& a, const Tensor& b);
TENON_API Tensor copysign(const Tensor& a, Number b);
// Returns 0 where x is below 0 or NaN, 1 above, and the element of `values` at 0. It has no
// gradient. Throws a DTypeError for two dtypes.
TENON_API Tensor heaviside(const Tensor& x, const Tensor& values);

// ---- arithmetic on three operands ----

// Returns a + weight (end - a); all broadcast. Floating dtypes only, of which the tensors have one.
TENON_API Tensor lerp(const Tensor& a, const Tensor& end, const Tensor& weight);
TENON_API Tensor lerp(const Tensor& a, const Tensor& end, double weight);
// Returns x + value a b; all three tensors broadcast and have one dtype, which is not bool.
TENON_API Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, Number value = 1);
// Returns x + value a / b; all three tensors broadcast and have one floating dtype.
TENON_API Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, Number value = 1);

// ---- bits of integers, and of bool, for which they are logic ----

// Returns the bits that are in both.
TENON_API Tensor bitwise_and(const Tensor& a, const Tensor& b);
TENON_API Tensor bitwise_and(const Tensor& a, Number b);
// Returns the bits that are in at least one.
TENON_API Tensor bitwise_or(const Tensor& a, const Tensor& b);
TENON_API Tensor bitwise_or(const Tensor& a, Number b);
// Returns the bits that are in exactly one.
TENON_API Tensor bitwise_xor(const Tensor& a, const Tensor& b);
TENON_API Tensor bitwise_xor(const Tensor& a, Number b);
// Returns the bits that are not in x.
TENON_API Tensor bitwise_not(const Tensor& x);
// Returns a 2^b without the bits that do not fit: 0 where b is negative or as large as the width.
TENON_API Tensor bitwise_left_shift(const Tensor& a, const Tensor& b);
TENON_API Tensor bitwise_left_shift(const Tensor& a, Number b);
// Returns a / 2^b rounded down; where b is negative or as large as the width, 0, or -1 if a is
// negative. Shifts are for integers alone.
TENON_API Tensor bitwise_right_shift(const Tensor& a, const Tensor& b);
TENON_API Tensor bitwise_right_shift(const Tensor& a, Number b);

inline Tensor operator&(const Tensor& a, const Tensor& b) { return bitwise_and(a, b); }
inline Tensor operator&(const Tensor& a, Number b) { return bitwise_and(a, b); }
inline Tensor operator|(const Tensor& a, const Tensor& b) { return bitwise_or(a, b); }
inline Tensor operator|(const Tensor& a, Number b) { return bitwise_or(a, b); }
inline Tensor operator^(const Tensor& a, const Tensor& b) { return bitwise_xor(a, b); }
inline Tensor operator^(const Tensor& a, Number b) { return bitwise_xor(a, b); }
inline Tensor operator~(const Tensor& x) { return bitwise_not(x); }
inline Tensor& operator&=(Tensor& a, const Tensor& b) { return a.bitwise_and_(b); }
inline Tensor& operator|=(Tensor& a, const Tensor& b) { return a.bitwise_or_(b); }
inline Tensor& operator^=(Tensor& a, const Tensor& b) { return a.bitwise_xor_(b); }
inline Tensor operator%(const Tensor& a, const Tensor& b) { return remainder(a, b); }
inline Tensor operator%(const Tensor& a, Number b) { return remainder(a, b); }

// ---- what kind of number an element is, and whether tensors are the same ----

// Returns whether x is NaN.
TENON_API Tensor isnan(const Tensor& x);
// Returns whether x is infinite.
TENON_API Tensor isinf(const Tensor& x);
// Returns whether x is neither infinite nor NaN.
TENON_API Tensor isfinite(const Tensor& x);
// Returns whether |a - b| <= atol + rtol |b|, or a and b are equal, or both NaN with `equal_nan`.
// The shapes broadcast. Throws a DTypeError for two dtypes and a ValueError for a tolerance below
// 0.
TENON_API Tensor isclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8,
                         bool equal_nan = false);
// Returns whether isclose holds for all elements. Waits for the result.
TENON_API bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8,
                        bool equal_nan = false);
// Returns whether both have the same shape and equal elements; NaN equals nothing. Waits for the
// result. Throws a DTypeError for two dtypes.
TENON_API bool equal(const Tensor& a, const Tensor& b);

}  // namespace tenon
