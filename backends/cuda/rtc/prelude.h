// The first header of a kernel that is compiled at run time. NVRTC comes without the headers of the
// host's compiler and of the toolkit; this is what the plugin's own device code needs of them, so
// that it is compiled from one text by nvcc and by NVRTC. Their names (<cmath>, …) stand for empty
// files there (rtc/headers.cpp).
#pragma once

using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long;
using uint64_t = unsigned long;
using intptr_t = long;
using uintptr_t = unsigned long;
static_assert(sizeof(int64_t) == 8 && sizeof(size_t) == 8, "a platform with 64-bit longs");

#define INT32_MIN (-2147483647 - 1)
#define INT64_MIN (-9223372036854775807l - 1)
#undef INFINITY
#undef NAN
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#undef assert
#define assert(condition) ((void)0)

namespace std {

using ::acos, ::acosh, ::asin, ::asinh, ::atan, ::atan2, ::atanh, ::ceil, ::copysign, ::cos, ::cosh,
    ::erf, ::erfc, ::exp, ::exp2, ::expm1, ::fabs, ::floor, ::fmod, ::hypot, ::lgamma, ::log,
    ::log10, ::log1p, ::log2, ::nearbyint, ::pow, ::sin, ::sinh, ::sqrt, ::tan, ::tanh, ::trunc;

template <class T, class U>
inline constexpr bool is_same_v = false;
template <class T>
inline constexpr bool is_same_v<T, T> = true;
template <class T>
inline constexpr bool is_floating_point_v = is_same_v<T, float> || is_same_v<T, double>;
template <class T>
inline constexpr bool is_signed_v = T(-1) < T(0);
template <class T>
inline constexpr bool is_unsigned_v = !is_signed_v<T>;
template <class T>
inline constexpr bool is_integral_v =
    is_same_v<T, int64_t> || is_same_v<T, int32_t> || is_same_v<T, uint8_t> ||
    is_same_v<T, uint32_t> || is_same_v<T, uint64_t>;

template <class T>
inline constexpr bool is_arithmetic_v = is_integral_v<T> || is_floating_point_v<T>;

namespace detail {
template <bool first, class T, class U>
struct Conditional {
  using type = T;
};
template <class T, class U>
struct Conditional<false, T, U> {
  using type = U;
};
template <class T>
struct Unsigned;
template <>
struct Unsigned<uint8_t> {
  using type = uint8_t;
};
template <>
struct Unsigned<int32_t> {
  using type = uint32_t;
};
template <>
struct Unsigned<int64_t> {
  using type = uint64_t;
};
}  // namespace detail
template <class T>
using make_unsigned_t = typename detail::Unsigned<T>::type;
template <bool first, class T, class U>
using conditional_t = typename detail::Conditional<first, T, U>::type;
// For arithmetic types, of which at least one may not be narrower than int.
template <class T, class U>
using common_type_t = decltype(true ? T() : U());

template <class T>
struct numeric_limits {
  static constexpr bool has_infinity = false;
  static constexpr T max() {
    return is_unsigned_v<T> ? T(-1) : T((uint64_t(1) << (8 * sizeof(T) - 1)) - 1);
  }
  static constexpr T min() { return is_unsigned_v<T> ? T(0) : T(-max() - 1); }
  static constexpr T lowest() { return min(); }
  static constexpr T infinity() { return T(0); }
};
template <>
struct numeric_limits<float> {
  static constexpr bool has_infinity = true;
  static constexpr float max() { return 0x1.fffffep+127f; }
  static constexpr float lowest() { return -max(); }
  static constexpr float infinity() { return __builtin_bit_cast(float, 0x7f800000u); }
  static constexpr float quiet_NaN() { return __builtin_bit_cast(float, 0x7fc00000u); }
};
template <>
struct numeric_limits<double> {
  static constexpr bool has_infinity = true;
  static constexpr double max() { return 0x1.fffffffffffffp+1023; }
  static constexpr double lowest() { return -max(); }
  static constexpr double infinity() { return __builtin_bit_cast(double, 0x7ff0000000000000ul); }
  static constexpr double quiet_NaN() { return __builtin_bit_cast(double, 0x7ff8000000000000ul); }
};

}  // namespace std

// Half types, by the instructions that the toolkit's headers use for them.
struct __half {
  uint16_t bits;
};
struct __nv_bfloat16 {
  uint16_t bits;
};
#if defined(TENON_CUDA_EMULATED)  // the CPU in the tests
inline float __half2float(__half x) { return tenon_device->half_to_float(x.bits); }
inline __half __float2half_rn(float x) { return {tenon_device->float_to_half(x)}; }
inline float __bfloat162float(__nv_bfloat16 x) { return tenon_device->bfloat_to_float(x.bits); }
inline __nv_bfloat16 __float2bfloat16_rn(float x) { return {tenon_device->float_to_bfloat(x)}; }
#else
__device__ inline float __half2float(__half x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
__device__ inline __half __float2half_rn(float x) {
  __half y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}
__device__ inline float __bfloat162float(__nv_bfloat16 x) {
  return __uint_as_float(static_cast<uint32_t>(x.bits) << 16);
}
__device__ inline __nv_bfloat16 __float2bfloat16_rn(float x) {
  __nv_bfloat16 y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}
#endif
