// Element types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string_view>

#include <tenon/core/api.h>

namespace tenon {

// The values equal those of tn_dtype in the plugin ABI. `boolean` is one byte, 0 or 1, and prints
// as "bool".
enum class DType : int32_t { f32, f64, f16, bf16, i64, i32, u8, boolean };

inline constexpr DType f32 = DType::f32, f64 = DType::f64, f16 = DType::f16, bf16 = DType::bf16,
                       i64 = DType::i64, i32 = DType::i32, u8 = DType::u8, boolean = DType::boolean;

// Returns the size of one element in bytes.
constexpr size_t size_of(DType t) {
  constexpr size_t sizes[] = {4, 8, 2, 2, 8, 4, 1, 1};
  return sizes[static_cast<int32_t>(t)];
}
constexpr bool is_floating_point(DType t) { return t <= DType::bf16; }
// True for i64, i32 and u8.
constexpr bool is_integer(DType t) { return t >= DType::i64 && t <= DType::u8; }

// Returns the name: "f32", …, "bool".
TENON_API std::string_view name_of(DType t);
TENON_API std::ostream& operator<<(std::ostream& out, DType t);  // prints name_of(t)
// The inverse of name_of. The ValueError for an unknown name lists all names.
TENON_API DType parse_dtype(std::string_view name);
// Returns the type in which an operator on both types computes: PyTorch's promotion for two tensors
// that both have dimensions, or both have none.
TENON_API DType promote(DType a, DType b);

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<int64_t> {
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
