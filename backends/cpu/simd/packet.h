// Eigen's packets, the SIMD vectors of the level that this file is compiled for, as rows of memory
// are read and written through them. The last packet of a row may be partly there and takes the
// same code as the others: what becomes of an element does not depend on where its row was cut.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
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
#elif defined(EIGEN_VECTORIZE_AVX)
  // A copy of a number of bytes that only the run knows would be a call.
  static constexpr int32_t kMasks[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  const auto* from = kMasks + 8 - count * static_cast<int64_t>(sizeof(T) / 4);
  const __m256i mask = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  if constexpr (sizeof(T) == 4) return _mm256_maskload_ps(p, mask);
  if constexpr (sizeof(T) == 8) return _mm256_maskload_pd(p, mask);
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

// So many elements at most are summed in T.
template <class T>
inline constexpr int64_t kSumBlock = 64 * 4 * kWidth<T>;

// What one block of sums_of_row() adds up: elements [begin, end) into four packets for each of the
// N sums, which are combined to one, `lanes`.
template <int N, class T, class Add>
inline void sum_block(int64_t begin, int64_t end, Add&& add, Vec<T> (&lanes)[N]) {
  constexpr int64_t w = kWidth<T>;
  Vec<T> a[N]{}, b[N]{}, c[N]{}, d[N]{};
  int64_t i = begin;
  for (; i + 4 * w <= end; i += 4 * w) {
    add(i, Full{}, a);
    add(i + w, Full{}, b);
    add(i + 2 * w, Full{}, c);
    add(i + 3 * w, Full{}, d);
  }
  for (; i + w <= end; i += w) add(i, Full{}, a);
  if (i < end) add(i, Rest{end - i}, b);
  for (int k = 0; k < N; ++k) lanes[k] = (a[k] + b[k]) + (c[k] + d[k]);
}

// N sums over a row at once: add(i, Full{} or Rest{}, sums) adds what belongs to the elements from
// i on to the N packets `sums`. Always in the same order, in blocks whose sums are added in f64:
// the rounding error does not grow with the row. Lanes behind the end have to add zero.
template <int N, class T, class Add>
inline std::array<double, N> sums_of_row(int64_t n, Add&& add) {
  std::array<double, N> totals{};
  for (int64_t begin = 0; begin < n; begin += kSumBlock<T>) {
    Vec<T> lanes[N];
    sum_block<N, T>(begin, std::min(n, begin + kSumBlock<T>), add, lanes);
    for (size_t k = 0; k < N; ++k) totals[k] += static_cast<double>(sum_lanes<T>(lanes[k]));
  }
  return totals;
}

// Sum of all lanes of f(i, Full{} or Rest{}) over a row. Lanes behind the end have to be zero.
template <class T, class F>
inline T sum_row(int64_t n, F&& f) {
  return static_cast<T>(sums_of_row<1, T>(
      n, [&](int64_t i, auto part, Vec<T>(&acc)[1]) { acc[0] += f(i, part); })[0]);
}

// Adds up 0 * x, which is NaN if an element is not finite.
template <class T>
bool all_finite(const T* x, int64_t n) {
  return sum_row<T>(n, [&](int64_t i, auto part) { return load(x + i, part) * T(0); }) == 0;
}

// Mean of a row and sum of squared distances from it. The mean that was rounded is corrected by the
// mean distance from it, so that a row of equal elements has no distances at all.
struct RowMoments {
  double mean, squares;
};
// Returns the moments of `count` elements whose distances from `near`, and their squares, add up to
// `sum` and `squares`.
inline RowMoments corrected(double near, double sum, double squares, double count) {
  if (!std::isfinite(near)) return {near, squares};
  const double rest = squares - sum * sum / count;  // rounding may leave less than nothing
  return {near + sum / count, rest < 0 ? 0 : rest};
}
template <class T>
inline RowMoments moments_of_row(int64_t n, const T* x) {
  const double count = static_cast<double>(n);
  const T near = static_cast<T>(
      sums_of_row<1, T>(
          n, [&](int64_t i, auto part, Vec<T>(&acc)[1]) { acc[0] += load(x + i, part); })[0] /
      count);
  const auto [sum, squares] = sums_of_row<2, T>(n, [&](int64_t i, auto part, Vec<T>(&acc)[2]) {
    const Vec<T> d = keep<T>(load(x + i, part) - near, part);
    acc[0] += d;
    acc[1] += d * d;
  });
  return corrected(static_cast<double>(near), sum, squares, count);
}

// N sums in each lane over the rows [0, n): add(i, sums) adds what belongs to row i to the N
// packets `sums`. In blocks that are added in f64, as above.
template <int N, class T>
struct LaneTotals {
  double at[N][kWidth<T>] = {};
  Vec<T> packet(int k) const {
    Vec<T> v{};
    for (int lane = 0; lane < kWidth<T>; ++lane) v[lane] = static_cast<T>(at[k][lane]);
    return v;
  }
};
template <int N, class T, class Add>
inline LaneTotals<N, T> sums_of_lanes(int64_t n, Add&& add) {
  constexpr int64_t kBlock = 256;
  LaneTotals<N, T> totals;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    Vec<T> sums[N]{};
    for (int64_t i = begin, end = std::min(n, begin + kBlock); i < end; ++i) add(i, sums);
    for (int k = 0; k < N; ++k)
      for (int lane = 0; lane < kWidth<T>; ++lane)
        totals.at[k][lane] += static_cast<double>(sums[k][lane]);
  }
  return totals;
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
