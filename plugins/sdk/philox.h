// Random numbers that are the same bits on every backend: Philox4x32-10 (Salmon et al., "Parallel
// random numbers: as easy as 1, 2, 3", 2011) and exactly how element i of a random tensor is made
// from (seed, offset, i).
//
//   key      the seed's low and high 32 bits
//   counter  {block low, block high, offset low, offset high}: `offset` names the call, so each
//            call has 2^64 blocks of its own
//
//   operator     block   element i takes
//   uniform f32  i / 4   word i % 4: its top 24 bits / 2^24
//   dropout      i / 4   word i % 4: kept where word >= floor(p * 2^32)
//   normal f32   i / 4   Box-Muller on words {0,1} gives elements 0 and 1 of the block,
//                        on words {2,3} elements 2 and 3
//   uniform f64  i / 2   words {2k, 2k+1}, k = i % 2, low word first: its top 53 bits / 2^53
//   randint      i / 2   the same 64 bits x: low + floor(x * (high - low) / 2^64)
//   normal f64   i / 2   Box-Muller on the block's two 64-bit numbers
//
// i counts elements in row-major order. All rounding steps are named: products that feed sums go
// through mul_add (one rounding), or are exact, so that contracting them changes nothing. Do not
// compile users of this header with -ffast-math. Works in CUDA device code, NVRTC included.
#pragma once

#if defined(__CUDACC_RTC__)
using uint32_t = unsigned int;
using int32_t = int;
using uint64_t = unsigned long long;
using int64_t = long long;
#else
#include <cmath>
#include <cstdint>
#include <cstring>
#endif

#include <tenon/plugins/sdk/host_device.h>

namespace tenon::sdk {

namespace detail {

// Returns the bits of a number as another type of the same size.
template <class To, class From>
TN_HD To bits_as(From from) {
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}

// Returns a * b + c rounded once. Without FMA instructions the product is exact in double, and the
// sum is rounded to odd there, so that rounding it to float gives what one rounding would have
// given (Boldo, Melquiond 2008). This vectorizes; the C library's call does not.
TN_HD float mul_add(float a, float b, float c) {
#if defined(__CUDA_ARCH__) || defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return fmaf(a, b, c);
#else
  double product = static_cast<double>(a) * b, addend = c;
  double sum = product + addend;
  double part = sum - product;
  double error = (product - (sum - part)) + (addend - part);
  int64_t bits = bits_as<int64_t>(sum);
  int64_t away =
      (error > 0) == (sum > 0) ? 1 : -1;  // the neighbour that the exact sum lies towards
  bits += (error == 0 || (bits & 1)) ? 0 : away;
  return static_cast<float>(bits_as<double>(bits));
#endif
}
TN_HD double mul_add(double a, double b, double c) { return fma(a, b, c); }

// Return the square root and the quotient, each rounded to the nearest number.
TN_HD float root(float x) {
#if defined(__CUDA_ARCH__)
  return __fsqrt_rn(x);
#else
  return sqrtf(x);
#endif
}
TN_HD double root(double x) { return ::sqrt(x); }  // not tenon::sqrt, of tensors

TN_HD float quotient(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fdiv_rn(a, b);
#else
  return a / b;
#endif
}
TN_HD double quotient(double a, double b) { return a / b; }

// Returns log(x) for a normal x in (0, 1]: m * 2^e with m in [0.70, 1.41), log m = 2
// atanh((m-1)/(m+1)).
TN_HD float log_unit(float x) {
  int32_t bits = bits_as<int32_t>(x);
  int32_t e = (bits - 0x3f330000) >> 23;
  float m = bits_as<float>(bits - static_cast<int32_t>(static_cast<uint32_t>(e) << 23));
  float s = quotient(m - 1.0f, m + 1.0f), z = s * s;
  float p = mul_add(z, 2.0f / 11, 2.0f / 9);
  p = mul_add(p, z, 2.0f / 7);
  p = mul_add(p, z, 2.0f / 5);
  p = mul_add(p, z, 2.0f / 3);
  float tail = mul_add(static_cast<float>(e), 1.42860682e-6f, s * (z * p));
  return mul_add(static_cast<float>(e), 0.693145752f, mul_add(2.0f, s, tail));
}
TN_HD double log_unit(double x) {
  int64_t bits = bits_as<int64_t>(x);
  int64_t e = (bits - 0x3fe6600000000000) >> 52;
  double m = bits_as<double>(bits - static_cast<int64_t>(static_cast<uint64_t>(e) << 52));
  double s = quotient(m - 1.0, m + 1.0), z = s * s;
  double p = mul_add(z, 2.0 / 23, 2.0 / 21);
  p = mul_add(p, z, 2.0 / 19);
  p = mul_add(p, z, 2.0 / 17);
  p = mul_add(p, z, 2.0 / 15);
  p = mul_add(p, z, 2.0 / 13);
  p = mul_add(p, z, 2.0 / 11);
  p = mul_add(p, z, 2.0 / 9);
  p = mul_add(p, z, 2.0 / 7);
  p = mul_add(p, z, 2.0 / 5);
  p = mul_add(p, z, 2.0 / 3);
  double k = static_cast<double>(static_cast<int32_t>(e));
  double tail = mul_add(k, 1.90821492927058770002e-10, s * (z * p));
  return mul_add(k, 0.693147180369123816490, mul_add(2.0, s, tail));
}

// Return sin and cos of t for |t| <= pi/4, with z = t^2, by Taylor's series.
TN_HD float sin_octant(float t, float z) {
  float p = mul_add(z, 1.0f / 362880, -1.0f / 5040);
  p = mul_add(p, z, 1.0f / 120);
  p = mul_add(p, z, -1.0f / 6);
  return mul_add(t, z * p, t);
}
TN_HD float cos_octant(float z) {
  float p = mul_add(z, -1.0f / 3628800, 1.0f / 40320);
  p = mul_add(p, z, -1.0f / 720);
  p = mul_add(p, z, 1.0f / 24);
  p = mul_add(p, z, -0.5f);
  return mul_add(p, z, 1.0f);
}
TN_HD double sin_octant(double t, double z) {
  double p = mul_add(z, 1.0 / 355687428096000, -1.0 / 1307674368000);
  p = mul_add(p, z, 1.0 / 6227020800);
  p = mul_add(p, z, -1.0 / 39916800);
  p = mul_add(p, z, 1.0 / 362880);
  p = mul_add(p, z, -1.0 / 5040);
  p = mul_add(p, z, 1.0 / 120);
  p = mul_add(p, z, -1.0 / 6);
  return mul_add(t, z * p, t);
}
TN_HD double cos_octant(double z) {
  double p = mul_add(z, -1.0 / 6402373705728000, 1.0 / 20922789888000);
  p = mul_add(p, z, -1.0 / 87178291200);
  p = mul_add(p, z, 1.0 / 479001600);
  p = mul_add(p, z, -1.0 / 3628800);
  p = mul_add(p, z, 1.0 / 40320);
  p = mul_add(p, z, -1.0 / 720);
  p = mul_add(p, z, 1.0 / 24);
  p = mul_add(p, z, -0.5);
  return mul_add(p, z, 1.0);
}

}  // namespace detail

// Four random words, which belong to one counter.
struct PhiloxBlock {
  uint32_t word[4];
};

// Returns block number `block` of a call's stream, by ten rounds.
TN_HD PhiloxBlock philox(uint64_t seed, uint64_t offset, uint64_t block) {
  uint32_t c0 = static_cast<uint32_t>(block), c1 = static_cast<uint32_t>(block >> 32);
  uint32_t c2 = static_cast<uint32_t>(offset), c3 = static_cast<uint32_t>(offset >> 32);
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
#if defined(__CUDA_ARCH__)
#pragma unroll
#elif defined(__GNUC__) && !defined(__CUDACC__)
#pragma GCC unroll 10
#endif
  for (int round = 0; round < 10; ++round) {
    uint64_t a = static_cast<uint64_t>(c0) * 0xD2511F53u;
    uint64_t b = static_cast<uint64_t>(c2) * 0xCD9E8D57u;
    c0 = static_cast<uint32_t>(b >> 32) ^ c1 ^ k0;
    c2 = static_cast<uint32_t>(a >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(b);
    c3 = static_cast<uint32_t>(a);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// Returns number k (0 or 1) of a block's two 64-bit numbers.
TN_HD uint64_t philox_u64(const PhiloxBlock& b, int k) {
  return b.word[2 * k] | static_cast<uint64_t>(b.word[2 * k + 1]) << 32;
}

// Return a number in [0, 1) from random bits.
TN_HD float unit_float(uint32_t word) {
  return static_cast<float>(static_cast<int32_t>(word >> 8)) * 0x1p-24f;
}
TN_HD double unit_double(uint64_t x) {
  return static_cast<double>(static_cast<int64_t>(x >> 11)) * 0x1p-53;
}

// Returns a number in [low, high) for u in [0, 1); `range` is high - low, taken in double and
// rounded to T. Where rounding reaches high it returns low.
template <class T>
TN_HD T uniform_from(T u, T low, T high, T range) {
  T y = detail::mul_add(u, range, low);
  return y < high ? y : low;
}

// Writes two standard normals by Box and Muller, exact to a few units in the last place. The radius
// comes from all bits of `a`, so the tails reach 6.7 (f32) and 9.4 (f64); the angle's two top bits
// are the quadrant, the rest an exact fraction of it.
TN_HD void normal_pair(uint32_t a, uint32_t b, float* z0, float* z1) {
  // int32 conversions only: they exist as vector instructions everywhere. 1 - u keeps log away from
  // 0.
  float high = static_cast<float>(static_cast<int32_t>(a >> 16)) * 65536.0f;
  float u = (high + (static_cast<float>(static_cast<int32_t>(a & 0xffffu)) + 0.5f)) * 0x1p-32f;
  float radius = detail::root(-2.0f * detail::log_unit(u));
  int32_t fraction =
      static_cast<int32_t>(b << 2) >> 2;  // 30 bits, signed: [-1/2, 1/2) of a quadrant
  float t = static_cast<float>(fraction) * (1.57079632679489662f * 0x1p-30f), z = t * t;
  float s = detail::sin_octant(t, z), c = detail::cos_octant(z);
  uint32_t quadrant = b >> 30;
  float x = (quadrant & 1) ? s : c, y = (quadrant & 1) ? c : s;
  x = (quadrant == 1 || quadrant == 2) ? -x : x;
  y = (quadrant >= 2) ? -y : y;
  *z0 = radius * x;
  *z1 = radius * y;
}
TN_HD void normal_pair(uint64_t a, uint64_t b, double* z0, double* z1) {
  double high =
      static_cast<double>(static_cast<int32_t>(static_cast<uint32_t>(a >> 43))) * 8796093022208.0;
  double low = static_cast<double>(static_cast<int64_t>(a & 0x7ffffffffffull));
  double u = (high + (low + 0.5)) * 0x1p-64;
  double radius = detail::root(-2.0 * detail::log_unit(u));
  double t = static_cast<double>(static_cast<int64_t>(b << 2) >> 2) *
             (1.57079632679489662 * 0x1p-62),
         z = t * t;
  double s = detail::sin_octant(t, z), c = detail::cos_octant(z);
  uint32_t quadrant = static_cast<uint32_t>(b >> 62);
  double x = (quadrant & 1) ? s : c, y = (quadrant & 1) ? c : s;
  x = (quadrant == 1 || quadrant == 2) ? -x : x;
  y = (quadrant >= 2) ? -y : y;
  *z0 = radius * x;
  *z1 = radius * y;
}

// Returns mean + std * z, rounded once.
template <class T>
TN_HD T normal_from(T z, T mean, T std) {
  return detail::mul_add(z, std, mean);
}

// Returns a whole number in [low, low + range) from 64 random bits; range > 0. The bias is below
// range / 2^64.
TN_HD int64_t randint_from(uint64_t x, int64_t low, uint64_t range) {
#if defined(__CUDA_ARCH__)
  uint64_t k = __umul64hi(x, range);
#else
  uint64_t k = static_cast<uint64_t>((static_cast<unsigned __int128>(x) * range) >> 64);
#endif
  return static_cast<int64_t>(static_cast<uint64_t>(low) + k);
}

// Returns the threshold for p in [0, 1]: a word keeps its element if it is not below it.
TN_HD uint64_t dropout_threshold(double p) { return static_cast<uint64_t>(p * 4294967296.0); }

}  // namespace tenon::sdk
