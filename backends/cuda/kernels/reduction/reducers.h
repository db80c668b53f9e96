// The reducers (reduce.h says what one has) of sums, products, extremes, variance and logsumexp:
// for nvcc, and for the kernels that are compiled at run time.
#pragma once

#include <limits>
#include <type_traits>

#include "device/exponential.h"
#include "device/groups.h"
#include "device/moments.h"
#include "kernels/reduction/gather.h"

namespace tenon::cuda {

// f32 is summed in f64: a sum of many millions of numbers stays exact to the last place. Integers
// wrap.
template <class T>
using Wide = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;
template <class T>
inline constexpr int kFloatPack = std::is_floating_point_v<T> ? kFullPack<T> : 1;
template <class T>
using Total = std::conditional_t<std::is_floating_point_v<T>, T, int64_t>;

// The parameter is what the sum is divided by: 1, or the number of elements for a mean.
template <class T>
struct Sum {
  using In = T;
  using Acc = Wide<T>;
  using Out = Total<T>;
  static constexpr int kInputs = 1, kLoad = kFloatPack<T>;
  __device__ static Acc init() { return 0; }
  template <int N>
  __device__ static void take(Acc& acc, const T* x, const T*, T, int64_t, int64_t) {
#pragma unroll
    for (int k = 0; k < N; ++k) acc += static_cast<Acc>(x[k]);
  }
  __device__ static Acc combine(Acc a, Acc b) { return a + b; }
  __device__ static Out finish(Acc a, double count) {
    if constexpr (std::is_floating_point_v<T>) return static_cast<Out>(a / count);
    return static_cast<Out>(a);
  }
};

template <class T>
struct Prod : Sum<T> {
  using Acc = Wide<T>;
  static constexpr int kLoad = 1;
  __device__ static Acc init() { return 1; }
  template <int N>
  __device__ static void take(Acc& acc, const T* x, const T*, T, int64_t, int64_t) {
#pragma unroll
    for (int k = 0; k < N; ++k) acc *= static_cast<Acc>(x[k]);
  }
  __device__ static Acc combine(Acc a, Acc b) { return a * b; }
  __device__ static Total<T> finish(Acc a, double) { return static_cast<Total<T>>(a); }
};

// A NaN becomes the result and stays it, because no comparison with NaN is true.
template <class T, bool Largest>
struct Extremum {
  using In = T;
  using Acc = T;
  using Out = T;
  using Limits = std::numeric_limits<T>;
  static constexpr int kInputs = 1, kLoad = kFloatPack<T>;
  static constexpr T kHighest = Limits::has_infinity ? Limits::infinity() : Limits::max();
  static constexpr T kLowest = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  __device__ static T init() { return Largest ? kLowest : kHighest; }
  __device__ static T combine(T a, T x) { return ((Largest ? x > a : x < a) | (x != x)) ? x : a; }
  template <int N>
  __device__ static void take(T& acc, const T* x, const T*, T, int64_t, int64_t) {
#pragma unroll
    for (int k = 0; k < N; ++k) acc = combine(acc, x[k]);
  }
  __device__ static T finish(T a, double) { return a; }
};
template <class T>
using Amax = Extremum<T, true>;
template <class T>
using Amin = Extremum<T, false>;

// `any` and `all` of bools. The accumulator begins with the lowest or the highest value.
using Any = Amax<uint8_t>;
struct All : Amin<uint8_t> {
  __device__ static uint8_t finish(uint8_t a, double) { return a != 0; }
};

// The parameter is the divisor; 0 if there are no elements.
template <class T>
struct Var : MomentsOf<T> {
  using Out = T;
  __device__ static T finish(const Moments& m, double divisor) {
    return static_cast<T>(m.m2 / divisor);
  }
};

template <class T>
inline constexpr T kLargest = std::numeric_limits<T>::max();

// The sum of exp(x - top) over the elements taken. `top` is the largest of them, but always finite,
// so that x - top is never inf - inf. If all elements are -inf, the sum is 0, and if one is inf, it
// is inf: the logarithms of these sums are right.
template <class T>
struct Exponentials {
  T top, sum;
  __device__ Exponentials shuffled(unsigned mask) const {
    return {shuffle_xor(top, mask), shuffle_xor(sum, mask)};
  }
};

template <class T>
struct LogSumExp {
  using In = T;
  using Acc = Exponentials<T>;
  using Out = T;
  static constexpr int kInputs = 1, kLoad = kFullPack<T>;

  __device__ static Acc init() { return {-kLargest<T>, T(0)}; }
  // The largest of a pack first, so that the sum is scaled once.
  template <int N>
  __device__ static void take(Acc& acc, const T* x, const T*, T, int64_t, int64_t) {
    T top = acc.top;
#pragma unroll
    for (int k = 0; k < N; ++k) top = x[k] > top ? x[k] : top;
    top = top < kLargest<T> ? top : kLargest<T>;
    if (top > acc.top) acc = {top, acc.sum * exp_of(acc.top - top)};
#pragma unroll
    for (int k = 0; k < N; ++k) acc.sum += exp_of(x[k] - top);
  }
  __device__ static Acc combine(const Acc& a, const Acc& b) {
    const T top = a.top > b.top ? a.top : b.top;
    return {top, a.sum * exp_of(a.top - top) + b.sum * exp_of(b.top - top)};
  }
  __device__ static T finish(const Acc& a, double) { return a.top + log_of(a.sum); }
};

}  // namespace tenon::cuda
