#include "simd/convert.h"

#include <bit>
#include <type_traits>

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace tenon::cpu {
namespace {

struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};
struct Bool {
  uint8_t bits;
};

// Branch-free, so that the loops vectorise without F16C.
inline float widen(Half h) {
  uint32_t magnitude = h.bits & 0x7fffu, sign = static_cast<uint32_t>(h.bits & 0x8000u) << 16;
  // Exponent moved by 112 through a product, which makes denormals normal.
  float f = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  uint32_t bits = std::bit_cast<uint32_t>(f);
  bits = magnitude >= 0x7c00u ? (bits | 0x7f800000u) : bits;
  return std::bit_cast<float>(bits | sign);
}
inline float widen(BFloat b) { return std::bit_cast<float>(static_cast<uint32_t>(b.bits) << 16); }

inline Half to_half(float f) {
  uint32_t bits = std::bit_cast<uint32_t>(f), sign = (bits >> 16) & 0x8000u, a = bits & 0x7fffffffu;
  uint32_t normal = (a + 0xfffu + ((a >> 13) & 1u) - 0x38000000u) >> 13;
  // Adding 1/2 leaves a denormal half, rounded to even, in the low bits.
  uint32_t small = std::bit_cast<uint32_t>(std::bit_cast<float>(a) + 0.5f) - 0x3f000000u;
  uint32_t h = a < 0x38800000u ? small : normal;
  h = a >= 0x477ff000u ? 0x7c00u : h;
  h = a > 0x7f800000u ? 0x7e00u : h;
  return {static_cast<uint16_t>(h | sign)};
}
inline BFloat to_bfloat(float f) {
  uint32_t bits = std::bit_cast<uint32_t>(f);
  uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return {
      static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16) | 0x40u : rounded)};
}

template <class From>
inline auto plain(From x) {
  if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat>) {
    return widen(x);
  } else if constexpr (std::is_same_v<From, Bool>) {
    return x.bits;
  } else {
    return x;
  }
}

template <class To, class From>
inline To cast(From from) {
  auto x = plain(from);
  using X = decltype(x);
  if constexpr (std::is_same_v<To, Half>) {
    return to_half(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, BFloat>) {
    return to_bfloat(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, Bool>) {
    return {static_cast<uint8_t>(x != X(0))};
  } else if constexpr (std::is_floating_point_v<X> && std::is_integral_v<To>) {
    // Outside the range C++ leaves the result open: make it the smallest i64, as the hardware does,
    // and cut that down.
    bool fits = x > X(-9223372036854775808.0) && x < X(9223372036854775808.0);
    if constexpr (sizeof(To) == 8) {
      return fits ? static_cast<int64_t>(x) : INT64_MIN;
    } else if constexpr (sizeof(To) == 4) {
      return x >= X(-2147483648.0) && x < X(2147483648.0) ? static_cast<int32_t>(x) : INT32_MIN;
    } else {
      return static_cast<To>(fits ? static_cast<int64_t>(x) : 0);
    }
  } else {
    return static_cast<To>(x);
  }
}

template <class To, class From>
void convert(int64_t n, void* dst, const void* src) {
  auto* y = static_cast<To*>(dst);
  auto* x = static_cast<const From*>(src);
  int64_t i = 0;
#if defined(__F16C__)
  if constexpr (std::is_same_v<To, Half> && std::is_same_v<From, float>) {
    for (; i + 8 <= n; i += 8)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i),
                       _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
  } else if constexpr (std::is_same_v<To, float> && std::is_same_v<From, Half>) {
    for (; i + 8 <= n; i += 8)
      _mm256_storeu_ps(y + i,
                       _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i))));
  }
#endif
  for (; i < n; ++i) y[i] = cast<To>(x[i]);
}

template <class From>
ConvertRow convert_from(tn_dtype to) {
  constexpr ConvertRow table[] = {
      convert<float, From>,   convert<double, From>,  convert<Half, From>,    convert<BFloat, From>,
      convert<int64_t, From>, convert<int32_t, From>, convert<uint8_t, From>, convert<Bool, From>};
  return table[to];
}

}  // namespace

ConvertRow convert_row(tn_dtype to, tn_dtype from) {
  switch (from) {
    case TN_F32:
      return convert_from<float>(to);
    case TN_F64:
      return convert_from<double>(to);
    case TN_F16:
      return convert_from<Half>(to);
    case TN_BF16:
      return convert_from<BFloat>(to);
    case TN_I64:
      return convert_from<int64_t>(to);
    case TN_I32:
      return convert_from<int32_t>(to);
    case TN_U8:
      return convert_from<uint8_t>(to);
    default:
      return convert_from<Bool>(to);
  }
}

}  // namespace tenon::cpu
