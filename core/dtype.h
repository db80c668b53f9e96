// The types of a tensor's elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string_view>

#include <tenon/core/api.h>

namespace tenon {

// The type of a tensor's elements: floating numbers of 32 and 64 bits, of 16 bits as IEEE 754 (f16)
// and as the upper half of an f32 (bf16), signed integers of 64 and 32 bits, bytes from 0 to 255,
// and truth values. `boolean` is one byte, 0 or 1; it prints as "bool". The values equal the ABI's
// tn_dtype.
enum class DType : int32_t { f32, f64, f16, bf16, i64, i32, u8, boolean };

// Give the values without the name of the type.
inline constexpr DType f32 = DType::f32, f64 = DType::f64, f16 = DType::f16, bf16 = DType::bf16,
                       i64 = DType::i64, i32 = DType::i32, u8 = DType::u8, boolean = DType::boolean;

// Returns the size of one element in bytes.
constexpr size_t size_of(DType t) {
  constexpr size_t sizes[] = {4, 8, 2, 2, 8, 4, 1, 1};
  return sizes[static_cast<int32_t>(t)];
}
// Returns whether t is f32, f64, f16 or bf16.
constexpr bool is_floating_point(DType t) { return t <= DType::bf16; }
// Returns whether t is f16 or bf16.
constexpr bool is_half(DType t) { return t == DType::f16 || t == DType::bf16; }
// Returns the type in which operators compute with t, and keep statistics of it: f32 for f16 and
// bf16, t otherwise.
constexpr DType computation_type(DType t) { return is_half(t) ? DType::f32 : t; }
// Returns whether t is i64, i32 or u8; bool does not count as an integer.
constexpr bool is_integer(DType t) { return t >= DType::i64 && t <= DType::u8; }

// Returns "f32", "f64", "f16", "bf16", "i64", "i32", "u8" or "bool".
TENON_API std::string_view name_of(DType t);
// Prints name_of(t).
TENON_API std::ostream& operator<<(std::ostream& out, DType t);
// Returns the dtype of that name. Throws a DTypeError that lists the names if there is none.
TENON_API DType parse_dtype(std::string_view name);
// Returns the dtype that both can be converted to, as torch.promote_types does: floating goes
// before integer and integer before bool, then the wider of the two; f16 and bf16 meet in f32.
// Operators promote like this unless just one operand has no dimensions: that one converts the
// other only if it is of a higher kind (floating over integer over bool).
TENON_API DType promote(DType a, DType b);

namespace detail {
template <class T>
inline constexpr bool is_element = false;
}

// DTypeOf<T>::value is the dtype whose elements are a T in memory.
template <class T>
struct DTypeOf {
  static_assert(detail::is_element<T>,
                "elements of a tensor are float, double, int64_t, long long, int32_t, uint8_t or "
                "bool; tenon/eigen.h adds Eigen::half and Eigen::bfloat16. Convert other values");
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
// int64_t is one of these two.
template <>
struct DTypeOf<long> {
  static_assert(sizeof(long) == sizeof(int64_t));
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<long long> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::boolean;
};

}  // namespace tenon
