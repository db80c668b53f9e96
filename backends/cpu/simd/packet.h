// Eigen's packets, the SIMD vectors of the level that this file is compiled for, as rows of memory
// are read and written through them. The last packet of a row may be partly there and takes the
// same code as the others: what becomes of an element does not depend on where its row was cut.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include <Eigen/Core>

namespace tenon::cpu {

// The type is one of the compiler's vectors as well, with its operators.
template <class T>
using Vec = typename Eigen::internal::packet_traits<T>::type;
template <class T>
inline constexpr int kWidth = Eigen::internal::packet_traits<T>::size;
inline constexpr int kVectorBytes = kWidth<float> * static_cast<int>(sizeof(float));
static_assert(kWidth<double> > 1, "the cpu backend needs a processor for which Eigen has packets");

template <class T>
inline Vec<T> load(const T* p) {
  return Eigen::internal::ploadu<Vec<T>>(p);
}
template <class T>
inline void store(T* p, Vec<T> v) {
  Eigen::internal::pstoreu(p, v);
}
template <class T>
inline Vec<T> splat(T x) {
  return Eigen::internal::pset1<Vec<T>>(x);
}

// The first `count` lanes, 0 <= count <= kWidth; the others read as zero. Touches no memory behind
// them.
template <class T>
inline Vec<T> load_part(const T* p, int64_t count) {
#if defined(EIGEN_VECTORIZE_AVX512)
  const auto mask = static_cast<uint16_t>((1u << count) - 1);
  if constexpr (sizeof(T) == 4) return _mm512_maskz_loadu_ps(mask, p);
  if constexpr (sizeof(T) == 8) return _mm512_maskz_loadu_pd(static_cast<__mmask8>(mask), p);
#else
  Vec<T> v{};
  std::memcpy(&v, p, static_cast<size_t>(count) * sizeof(T));
  return v;
#endif
}
template <class T>
inline void store_part(T* p, Vec<T> v, int64_t count) {
#if defined(EIGEN_VECTORIZE_AVX512)
  const auto mask = static_cast<uint16_t>((1u << count) - 1);
  if constexpr (sizeof(T) == 4) _mm512_mask_storeu_ps(p, mask, v);
  if constexpr (sizeof(T) == 8) _mm512_mask_storeu_pd(p, static_cast<__mmask8>(mask), v);
#else
  std::memcpy(p, &v, static_cast<size_t>(count) * sizeof(T));
#endif
}

// kWidth rows of kWidth lanes, in place.
template <class T>
inline void transpose(Vec<T> (&rows)[kWidth<T>]) {
  Eigen::internal::PacketBlock<Vec<T>, kWidth<T>> block;
  for (int i = 0; i < kWidth<T>; ++i) block.packet[i] = rows[i];
  Eigen::internal::ptranspose(block);
  for (int i = 0; i < kWidth<T>; ++i) rows[i] = block.packet[i];
}

namespace detail {
template <int First, class V, int... I>
inline V zip(V a, V b, std::integer_sequence<int, I...>) {
  constexpr int width = sizeof...(I);
  return __builtin_shufflevector(a, b, (First + I / 2 + (I % 2) * width)...);
}
template <class V>
inline constexpr int lanes = static_cast<int>(sizeof(V) / sizeof(std::declval<V>()[0]));
}  // namespace detail

// a0 b0 a1 b1 … of the lower and of the upper halves of any of the compiler's vectors.
template <class V>
inline V zip_low(V a, V b) {
  return detail::zip<0>(a, b, std::make_integer_sequence<int, detail::lanes<V>>());
}
template <class V>
inline V zip_high(V a, V b) {
  constexpr int n = detail::lanes<V>;
  return detail::zip<n / 2>(a, b, std::make_integer_sequence<int, n>());
}

// Combines all lanes, always in the same order.
template <class T>
inline T sum_lanes(Vec<T> v) {
  return Eigen::internal::predux(v);
}
template <class T>
inline Vec<T> max_vec(Vec<T> a, Vec<T> b) {
  return Eigen::internal::pmax(a, b);
}

// Whole packets of a row, then what is left of it, in the same code: for_lanes calls f(i, Full{})
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

// Lanes that are not there become `other`.
template <class T>
inline Vec<T> keep(Vec<T> v, Full, T = T(0)) {
  return v;
}
template <class T>
inline Vec<T> keep(Vec<T> v, Rest rest, T other = T(0)) {
  const Vec<T> lane = Eigen::internal::plset<Vec<T>>(T(0));
  return lane < splat(static_cast<T>(rest.count)) ? v : splat(other);
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
  return Eigen::internal::predux_max(max_vec<T>(a, b));
}

}  // namespace tenon::cpu
