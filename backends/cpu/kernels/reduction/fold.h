// What folds elements to accumulators, for every reducer R that says how two are combined: whole
// rows, in independent lanes, and rows side by side.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "simd/packet.h"

namespace tenon::cpu {

template <class R>
inline typename R::Acc take(typename R::Acc a, typename R::Acc x) {
  return typename R::Op()(a, x);
}

namespace detail {

typedef float HalfPacket __attribute__((vector_size(kWidth<double> * sizeof(float))));

// As many elements of `From` as `To` has lanes, converted. Compilers convert vectors in halves.
template <class To, class From>
inline Vec<To> load_as(const From* p) {
  if constexpr (std::is_same_v<To, From>) {
    return load(p);
  } else {
    static_assert(std::is_same_v<To, double> && std::is_same_v<From, float>);
#if defined(EIGEN_VECTORIZE_AVX512)
    return _mm512_cvtps_pd(_mm256_loadu_ps(p));
#elif defined(EIGEN_VECTORIZE_AVX)
    return _mm256_cvtps_pd(_mm_loadu_ps(p));
#else
    HalfPacket part;
    std::memcpy(&part, p, sizeof part);
    return __builtin_convertvector(part, Vec<double>);
#endif
  }
}

template <int Distance, class V, int... I>
inline V swapped(V v, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(v, v, (I ^ Distance)...);
}

// Half of the lanes with the other half, until one is left.
template <class R, int kHalf = kWidth<typename R::Acc> / 2>
inline typename R::Acc join_lanes(Vec<typename R::Acc> v) {
  if constexpr (kHalf == 0) {
    return v[0];
  } else {
    constexpr auto lanes = std::make_integer_sequence<int, kWidth<typename R::Acc>>();
    return join_lanes<R, kHalf / 2>(R::combine(v, swapped<kHalf>(v, lanes)));
  }
}

// Folds the whole groups of kLanes elements of x[start, n) and moves `start` behind them.
template <class R, int kLanes>
inline typename R::Acc fold_groups(const typename R::In* x, int64_t& start, int64_t n) {
  using Acc = typename R::Acc;
  int64_t i = start;
  if (n - i < kLanes) return R::init();
  start = n - (n - i) % kLanes;
  if constexpr (std::is_floating_point_v<Acc>) {
    constexpr int w = kWidth<Acc>, packets = kLanes / w;
    Vec<Acc> lanes[packets];
    for (auto& packet : lanes) packet = splat(R::init());
    for (; i + kLanes <= n; i += kLanes)
      for (int k = 0; k < packets; ++k)
        lanes[k] = R::combine(lanes[k], load_as<Acc>(x + i + k * w));
    for (int half = packets / 2; half > 0; half /= 2)
      for (int k = 0; k < half; ++k) lanes[k] = R::combine(lanes[k], lanes[k + half]);
    return join_lanes<R>(lanes[0]);
  } else {
    Acc lanes[kLanes];
    std::fill_n(lanes, kLanes, R::init());
    for (; i + kLanes <= n; i += kLanes)
      for (int k = 0; k < kLanes; ++k) lanes[k] = take<R>(lanes[k], static_cast<Acc>(x[i + k]));
    for (int half = kLanes / 2; half > 0; half /= 2)
      for (int k = 0; k < half; ++k) lanes[k] = take<R>(lanes[k], lanes[k + half]);
    return lanes[0];
  }
}

}  // namespace detail

// Folds a part of a row in independent lanes, so that it vectorises and errors stay those of short
// sums.
template <class R>
inline typename R::Acc fold_part(const typename R::In* x, int64_t n) {
  using Acc = typename R::Acc;
  constexpr int kLanes = std::is_floating_point_v<Acc> ? 256 / sizeof(Acc) : 32;
  int64_t i = 0;
  Acc total = detail::fold_groups<R, kLanes>(x, i, n);
  total = take<R>(total, detail::fold_groups<R, kLanes / 4>(x, i, n));
  for (; i < n; ++i) total = take<R>(total, static_cast<Acc>(x[i]));
  return total;
}

// Long rows by halves: the rounding error of a sum grows with the logarithm of its length.
template <class R>
typename R::Acc fold_row(const typename R::In* x, int64_t n) {
  constexpr int64_t kPart = 4096;
  if (n <= kPart) return fold_part<R>(x, n);
  const int64_t half = n / 2 / kPart * kPart + (n / 2 < kPart ? kPart : 0);
  // One after the other: as arguments of one call the second would be read first, and memory
  // backwards.
  const typename R::Acc first = fold_row<R>(x, half);
  return take<R>(first, fold_row<R>(x + half, n - half));
}

template <class R>
void fold_rows(void* acc, const void* in, int64_t stride, int64_t rows, int64_t n) {
  auto* a = static_cast<typename R::Acc*>(acc);
  auto* x = static_cast<const typename R::In*>(in);
  for (int64_t r = 0; r < rows; ++r) a[r] = take<R>(a[r], fold_row<R>(x + r * stride, n));
}

// Rows of a few elements, one behind the other: sixteen of them at once.
template <class R>
void fold_short(void* acc, const void* in, int64_t rows, int64_t n) {
  constexpr int64_t kLanes = 16;
  using Acc = typename R::Acc;
  auto* a = static_cast<Acc*>(acc);
  auto* x = static_cast<const typename R::In*>(in);
  int64_t r = 0;
  for (; r + kLanes <= rows; r += kLanes) {
    Acc lanes[kLanes];
    std::copy_n(a + r, kLanes, lanes);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t k = 0; k < kLanes; ++k)
        lanes[k] = take<R>(lanes[k], static_cast<Acc>(x[(r + k) * n + i]));
    std::copy_n(lanes, kLanes, a + r);
  }
  for (; r < rows; ++r)
    for (int64_t i = 0; i < n; ++i) a[r] = take<R>(a[r], static_cast<Acc>(x[r * n + i]));
}

// kRows rows of n elements into n accumulators, which are read and written once for all of them.
template <class R, int kRows>
inline void add_some_rows(typename R::Acc* a, const typename R::In* x, int64_t stride, int64_t n) {
  using Acc = typename R::Acc;
  int64_t k = 0;
  if constexpr (std::is_floating_point_v<Acc>) {
    for (; k + kWidth<Acc> <= n; k += kWidth<Acc>) {
      Vec<Acc> v = load(a + k);
      for (int r = 0; r < kRows; ++r) v = R::combine(v, detail::load_as<Acc>(x + r * stride + k));
      store(a + k, v);
    }
  }
  for (; k < n; ++k) {
    Acc v = a[k];
    for (int r = 0; r < kRows; ++r) v = take<R>(v, static_cast<Acc>(x[r * stride + k]));
    a[k] = v;
  }
}

template <class R>
void add_rows(void* acc, const void* in, int64_t stride, int64_t rows, int64_t n) {
  auto* a = static_cast<typename R::Acc*>(acc);
  auto* x = static_cast<const typename R::In*>(in);
  constexpr int kSome = 4;
  int64_t r = 0;
  for (; r + kSome <= rows; r += kSome) add_some_rows<R, kSome>(a, x + r * stride, stride, n);
  for (; r < rows; ++r) add_some_rows<R, 1>(a, x + r * stride, stride, n);
}

}  // namespace tenon::cpu
