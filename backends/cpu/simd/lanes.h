// SIMD vectors of the level that this file is compiled for, through the vector extensions that GCC
// and clang share.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#if defined(__AVX512F__) || defined(__AVX__)
#include <immintrin.h>
#endif

namespace tenon::cpu {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

template <class T>
inline constexpr int kWidth = kVectorBytes / static_cast<int>(sizeof(T));

template <class T>
struct VecOf {
  typedef T type __attribute__((vector_size(kVectorBytes)));
  typedef T unaligned __attribute__((vector_size(kVectorBytes), aligned(alignof(T)), may_alias));
};
template <class T>
using Vec = typename VecOf<T>::type;

template <class T>
inline Vec<T> load(const T* p) {
  return *reinterpret_cast<const typename VecOf<T>::unaligned*>(p);
}

template <class T>
inline void store(T* p, Vec<T> v) {
  *reinterpret_cast<typename VecOf<T>::unaligned*>(p) = v;
}

template <class T>
inline Vec<T> splat(T x) {
  return x - Vec<T>{};  // folds to a broadcast; x + 0 would not, since -0 + 0 is +0
}

// The first `count` lanes, 0 <= count <= kWidth; the others read as zero. Touches no memory behind
// them.
inline Vec<float> load_part(const float* p, int64_t count) {
#if defined(__AVX512F__)
  return reinterpret_cast<Vec<float>>(
      _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), p));
#else
  Vec<float> v{};
  std::memcpy(&v, p, static_cast<size_t>(count) * sizeof(float));
  return v;
#endif
}
inline Vec<double> load_part(const double* p, int64_t count) {
#if defined(__AVX512F__)
  return reinterpret_cast<Vec<double>>(
      _mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << count) - 1), p));
#else
  Vec<double> v{};
  std::memcpy(&v, p, static_cast<size_t>(count) * sizeof(double));
  return v;
#endif
}
inline void store_part(float* p, Vec<float> v, int64_t count) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << count) - 1), reinterpret_cast<__m512>(v));
#else
  std::memcpy(p, &v, static_cast<size_t>(count) * sizeof(float));
#endif
}
inline void store_part(double* p, Vec<double> v, int64_t count) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_pd(p, static_cast<__mmask8>((1u << count) - 1), reinterpret_cast<__m512d>(v));
#else
  std::memcpy(p, &v, static_cast<size_t>(count) * sizeof(double));
#endif
}

namespace detail {
template <class T, int... I>
inline Vec<T> zip_low(Vec<T> a, Vec<T> b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, (I / 2 + (I % 2) * kWidth<T>)...);
}
template <class T, int... I>
inline Vec<T> zip_high(Vec<T> a, Vec<T> b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, (I / 2 + kWidth<T> / 2 + (I % 2) * kWidth<T>)...);
}
template <class T, int By, int... I>
inline Vec<T> rotate(Vec<T> a, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, a, ((I + By) % kWidth<T>)...);
}
}  // namespace detail

// a0 b0 a1 b1 … of the lower and of the upper halves.
template <class T>
inline Vec<T> zip_low(Vec<T> a, Vec<T> b) {
  return detail::zip_low<T>(a, b, std::make_integer_sequence<int, kWidth<T>>());
}
template <class T>
inline Vec<T> zip_high(Vec<T> a, Vec<T> b) {
  return detail::zip_high<T>(a, b, std::make_integer_sequence<int, kWidth<T>>());
}

// kWidth rows of kWidth lanes, in place. A zip of rows i and i + half rotates the bits of (row,
// lane) by one; log2 of them swap the two.
template <class T>
inline void transpose(Vec<T> (&rows)[kWidth<T>]) {
  constexpr int half = kWidth<T> / 2;
#pragma GCC unroll 4
  for (int stage = 1; stage < kWidth<T>; stage *= 2) {
    Vec<T> next[kWidth<T>];
#pragma GCC unroll 8
    for (int i = 0; i < half; ++i) {
      next[2 * i] = zip_low<T>(rows[i], rows[i + half]);
      next[2 * i + 1] = zip_high<T>(rows[i], rows[i + half]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kWidth<T>; ++i) rows[i] = next[i];
  }
}

// Combines all lanes by `op`, always in the same order.
template <class T, int By = kWidth<T> / 2, class Op>
inline T fold(Vec<T> v, Op op) {
  if constexpr (By == 0) {
    return v[0];
  } else {
    return fold<T, By / 2>(
        op(v, detail::rotate<T, By>(v, std::make_integer_sequence<int, kWidth<T>>())), op);
  }
}
template <class T>
inline T sum_lanes(Vec<T> v) {
  return fold<T>(v, [](Vec<T> a, Vec<T> b) { return a + b; });
}
template <class T>
inline Vec<T> max_vec(Vec<T> a, Vec<T> b) {
  return a > b ? a : b;
}
template <class T>
inline T max_lanes(Vec<T> v) {
  return fold<T>(v, [](Vec<T> a, Vec<T> b) { return max_vec<T>(a, b); });
}

// Whole vectors of a row, then what is left of it, in the same code: for_lanes calls f(i, Full{})
// and at last f(i, Rest{count}).
struct Full {};
struct Rest {
  int64_t count;
};
template <class T>
inline Vec<T> load(const T* p, Full) {
  return load(p);
}
template <class T>
inline Vec<T> load(const T* p, Rest rest) {
  return load_part(p, rest.count);
}
template <class T>
inline void store(T* p, Vec<T> v, Full) {
  store(p, v);
}
template <class T>
inline void store(T* p, Vec<T> v, Rest rest) {
  store_part(p, v, rest.count);
}
namespace detail {
template <class T, int... I>
constexpr Vec<T> iota(std::integer_sequence<int, I...>) {
  return Vec<T>{T(I)...};
}
}  // namespace detail

// Lanes that are not there become `other`.
template <class T>
inline Vec<T> keep(Vec<T> v, Full, T = T(0)) {
  return v;
}
template <class T>
inline Vec<T> keep(Vec<T> v, Rest rest, T other = T(0)) {
  constexpr Vec<T> lane = detail::iota<T>(std::make_integer_sequence<int, kWidth<T>>());
  return lane < static_cast<T>(rest.count) ? v : splat(other);
}

template <class T, class F>
inline void for_lanes(int64_t n, F&& f) {
  int64_t i = 0;
  for (; i + kWidth<T> <= n; i += kWidth<T>) f(i, Full{});
  if (i < n) f(i, Rest{n - i});
}

// Sum of all lanes of f(i, Full{} or Rest{}) over a row, always in the same order. Lanes behind the
// end have to be zero.
template <class T, class F>
inline T sum_row(int64_t n, F&& f) {
  constexpr int64_t w = kWidth<T>;
  Vec<T> a{}, b{}, c{}, d{};
  int64_t i = 0;
  for (; i + 4 * w <= n; i += 4 * w) {
    a += f(i, Full{});
    b += f(i + w, Full{});
    c += f(i + 2 * w, Full{});
    d += f(i + 3 * w, Full{});
  }
  for (; i + w <= n; i += w) a += f(i, Full{});
  if (i < n) b += f(i, Rest{n - i});
  return sum_lanes<T>((a + b) + (c + d));
}

template <class T>
inline T max_row(int64_t n, const T* x) {
  constexpr T least = -std::numeric_limits<T>::infinity();
  Vec<T> a = splat(least), b = a;
  int64_t i = 0;
  for (; i + 2 * kWidth<T> <= n; i += 2 * kWidth<T>) {
    a = max_vec<T>(a, load(x + i));
    b = max_vec<T>(b, load(x + i + kWidth<T>));
  }
  for (; i + kWidth<T> <= n; i += kWidth<T>) a = max_vec<T>(a, load(x + i));
  if (i < n) b = max_vec<T>(b, keep<T>(load_part(x + i, n - i), Rest{n - i}, least));
  return max_lanes<T>(max_vec<T>(a, b));
}

// e^x within 2 ulp: x = n ln2 + r, then a polynomial in r. Overflows to infinity, underflows
// through subnormals, passes NaN on.
inline Vec<float> exp_vec(Vec<float> x) {
  typedef int32_t Int __attribute__((vector_size(kVectorBytes)));
  constexpr float magic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  x = x > 89.0f ? splat(89.0f) : x;
  x = x < -105.0f ? splat(-105.0f) : x;
  Vec<float> t = x * 1.44269504088896341f + magic, n = t - magic;
  Int i = reinterpret_cast<Int>(t) - 0x4b400000;
  Vec<float> r = x - n * 0.693359375f + n * 2.12194440e-4f;
  Vec<float> p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  // In two factors, since 2^n itself may lie outside the normal numbers.
  Int half = i >> 1;
  return p * reinterpret_cast<Vec<float>>((half + 127) << 23) *
         reinterpret_cast<Vec<float>>((i - half + 127) << 23);
}
inline Vec<double> exp_vec(Vec<double> x) {
  typedef int64_t Int __attribute__((vector_size(kVectorBytes)));
  constexpr double magic = 6755399441055744.0;  // 1.5 * 2^52
  x = x > 710.0 ? splat(710.0) : x;
  x = x < -746.0 ? splat(-746.0) : x;
  Vec<double> t = x * 1.4426950408889634074 + magic, n = t - magic;
  Int i = reinterpret_cast<Int>(t) - 0x4338000000000000;
  Vec<double> r = x - n * 6.93145751953125e-1 - n * 1.42860682030941723212e-6;
  constexpr double inverse[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800,
                                1.0 / 362880,     1.0 / 40320,     1.0 / 5040,     1.0 / 720,
                                1.0 / 120,        1.0 / 24,        1.0 / 6,        0.5};
  Vec<double> p = splat(inverse[0]);
#pragma GCC unroll 12
  for (int k = 1; k < 12; ++k) p = p * r + inverse[k];
  p = p * (r * r) + r + 1.0;
  Int half = i >> 1;
  return p * reinterpret_cast<Vec<double>>((half + 1023) << 52) *
         reinterpret_cast<Vec<double>>((i - half + 1023) << 52);
}

}  // namespace tenon::cpu
