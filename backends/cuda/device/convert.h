// Conversion between dtypes in kernels and on the host. The bits are those of the cpu plugin,
// except the payloads of NaN.
#pragma once

#include <cstdint>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace tenon::cuda {

using Half = __half;
using BFloat = __nv_bfloat16;
struct Bool {
  uint8_t bits;
};

// What kernels compute in: f16 and bf16 are computed as f32, bools as bytes.
__host__ __device__ inline float widen(Half x) { return __half2float(x); }
__host__ __device__ inline float widen(BFloat x) { return __bfloat162float(x); }
__host__ __device__ inline uint8_t widen(Bool x) { return x.bits; }
template <class T>
__host__ __device__ inline T widen(T x) {
  return x;
}
template <class T>
using Computed = decltype(widen(T{}));

// Floats to integers truncate; what does not fit becomes the smallest i64, cut down to the type.
template <class To, class From>
__host__ __device__ inline To truncate(From x) {
  if constexpr (sizeof(To) == 4) {
    return x >= From(-2147483648.0) && x < From(2147483648.0) ? static_cast<To>(x) : INT32_MIN;
  } else {
    bool fits = x > From(-9223372036854775808.0) && x < From(9223372036854775808.0);
    return static_cast<To>(fits ? static_cast<int64_t>(x) : INT64_MIN);
  }
}

template <class To, class From>
__host__ __device__ inline To cast(From from) {
  auto x = widen(from);
  using X = decltype(x);
  if constexpr (std::is_same_v<To, From>) {
    return from;
  } else if constexpr (std::is_same_v<To, Half>) {
    return __float2half_rn(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, BFloat>) {
    return __float2bfloat16_rn(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, Bool>) {
    return {static_cast<uint8_t>(x != X(0))};
  } else if constexpr (std::is_floating_point_v<X> && std::is_integral_v<To>) {
    return truncate<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace tenon::cuda
