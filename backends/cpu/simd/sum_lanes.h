// The sums of the lanes of several packets at once.
#pragma once

#include <cstring>
#include <utility>

#include "simd/packet.h"

namespace tenon::cpu {

namespace detail {
// In each group of 2 Half lanes, a's halves are added up in the lower half, and b's in the upper.
template <int Half, class V, int... I>
inline V add_halves(V a, V b, std::integer_sequence<int, I...>) {
  constexpr int width = sizeof...(I);
  return __builtin_shufflevector(a, b, (I & Half ? I + width : I)...) +
         __builtin_shufflevector(a, b, (I & Half ? I + width - Half : I + Half)...);
}
// A vector of half the width.
template <class V, int... I>
inline auto add_halves(V v, std::integer_sequence<int, I...>) {
  constexpr int half = sizeof...(I);
  return __builtin_shufflevector(v, v, I...) + __builtin_shufflevector(v, v, (I + half)...);
}

template <int N, class V>
inline void sum_each(V* v, float* sums) {
  constexpr int width = lanes<V>;
  constexpr auto all = std::make_integer_sequence<int, width>();
  constexpr auto half = std::make_integer_sequence<int, width / 2>();
  if constexpr (N > width) {
    sum_each<width>(v, sums);
    sum_each<N - width>(v + width, sums + width);
  } else if constexpr (width > 4 && N <= width / 2) {
    decltype(add_halves(v[0], half)) halves[N];
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) halves[i] = add_halves(v[i], half);
    sum_each<N>(halves, sums);
  } else {
    V a[width];
#pragma GCC unroll 16
    for (int i = 0; i < width; ++i) a[i] = v[i < N ? i : 0];
    if constexpr (width >= 16)
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) a[i] = add_halves<8>(a[i], a[i + 8], all);
    if constexpr (width >= 8)
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) a[i] = add_halves<4>(a[i], a[i + 4], all);
    for (int i = 0; i < 2; ++i) a[i] = add_halves<2>(a[i], a[i + 2], all);
    a[0] = add_halves<1>(a[0], a[1], all);
    std::memcpy(sums, a, sizeof(V));
  }
}
}  // namespace detail

// sums[i] is sum_lanes(v[i]), to the bit on x86-64: several vectors of floats share their
// additions. `sums` has room for whole vectors.
template <class T, int N>
inline void sum_lanes(Vec<T> (&v)[N], T* sums) {
  if constexpr (sizeof(T) == 4)
    detail::sum_each<N>(v, sums);
  else
    for (int i = 0; i < N; ++i) sums[i] = sum_lanes<T>(v[i]);
}

}  // namespace tenon::cpu
