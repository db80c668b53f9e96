// Conversion between dtypes, a row at a time.
#pragma once

#include <bit>

#include "runtime/common.h"

namespace tenon::cpu {

// bf16 by its bits, in functions that compilers make vectors of; Eigen's packets of bf16 take three
// times as long. Rounds to even; NaN stays one.
inline float widened(uint16_t x) { return std::bit_cast<float>(static_cast<uint32_t>(x) << 16); }
inline uint16_t narrowed(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x), sign = bits >> 16 & 0x8000;
  const uint32_t even = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  const bool nan = (bits & 0x7fffffff) > 0x7f800000;
  return static_cast<uint16_t>(nan ? sign | 0x7fc0 : even);
}

// `n` elements from `src` to `dst`, both contiguous. Float to integer truncates; to bool is != 0;
// f16 and bf16 round to even.
using ConvertRow = void (*)(int64_t n, void* dst, const void* src);
ConvertRow convert_row(tn_dtype to, tn_dtype from);

}  // namespace tenon::cpu
