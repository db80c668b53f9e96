// Count, mean and sum of squared deviations, combined as Chan, Golub and LeVeque do (1979): one
// pass over memory, no cancellation.
#pragma once

#include "device/groups.h"

namespace tenon::cuda {

struct Moments {
  double n, mean, m2;
  __device__ Moments shuffled(unsigned mask) const {
    return {shuffle_xor(n, mask), shuffle_xor(mean, mask), shuffle_xor(m2, mask)};
  }
};

template <class T>
__device__ inline bool is_finite(T x) {
  return x - x == T(0);
}

// For T double and float.
template <class T>
__device__ inline void combine_moments(T& n, T& mean, T& m2, T n2, T mean2, T m2_2) {
  const T total = n + n2, part = n2 / total, delta = mean2 - mean;
  // A mean that is not finite is that of the sum, without differences of infinities.
  mean += is_finite(mean) && is_finite(mean2) ? delta * part : mean2;
  m2 += m2_2 + delta * delta * n * part;
  n = total;
}

__device__ inline Moments combine(const Moments& a, const Moments& b) {
  if (a.n == 0) return b;
  if (b.n == 0) return a;
  Moments sum = a;
  combine_moments(sum.n, sum.mean, sum.m2, b.n, b.mean, b.m2);
  return sum;
}

// The mean of those at hand and their deviations from it: they are read twice.
template <class T, int N>
struct MomentsOfPack {
  T mean = 0, m2 = 0;
  template <class In>
  __device__ MomentsOfPack(const In* x, In shift) {
#pragma unroll
    for (int k = 0; k < N; ++k) mean += static_cast<T>(x[k] - shift);
    mean /= N;
#pragma unroll
    for (int k = 0; k < N; ++k)
      m2 += (static_cast<T>(x[k] - shift) - mean) * (static_cast<T>(x[k] - shift) - mean);
  }
};

// What one thread gathers, in f64 of any T, or of f32 in f32, which most devices compute with tens
// of times faster: as distances from the first element, so that a mean far from zero costs no
// digits, and no more than kMax at a time, so that roundings do not add up. It is put to the total
// in f64. Distances of 1e18 and more overflow there.
template <class T>
struct MomentsOfThread;

template <>
struct MomentsOfThread<double> {
  Moments total{0, 0, 0};
  template <int N, class In>
  __device__ void take(const In* x) {
    const MomentsOfPack<double, N> pack(x, In(0));
    total = combine(total, {static_cast<double>(N), pack.mean, pack.m2});
  }
  __device__ Moments sum() const { return total; }
};

template <>
struct MomentsOfThread<float> {
  static constexpr float kMax = 512;
  Moments total{0, 0, 0};
  float shift = 0, n = 0, mean = 0, m2 = 0;
  template <int N>
  __device__ void take(const float* x) {
    if (n == 0) shift = is_finite(x[0]) ? x[0] : 0.0f;
    const MomentsOfPack<float, N> pack(x, shift);
    combine_moments(n, mean, m2, static_cast<float>(N), pack.mean, pack.m2);
    if (n >= kMax) {
      total = sum();
      n = mean = m2 = 0;
    }
  }
  __device__ Moments sum() const {
    return combine(total,
                   {static_cast<double>(n), static_cast<double>(shift) + static_cast<double>(mean),
                    static_cast<double>(m2)});
  }
};

// The reducer (see reduce.h) without its end.
template <class T, class Gather = double>
struct MomentsOf {
  using In = T;
  using Acc = Moments;
  using Local = MomentsOfThread<Gather>;
  static constexpr int kInputs = 1, kLoad = kFullPack<T>;
  __device__ static Moments init() { return {0, 0, 0}; }
  __device__ static Moments settle(const Local& local) { return local.sum(); }
  __device__ static Moments combine(const Moments& a, const Moments& b) {
    return cuda::combine(a, b);
  }
  template <int N>
  __device__ static void take(Local& local, const T* x, const T*, T, int64_t, int64_t) {
    local.template take<N>(x);
  }
};

}  // namespace tenon::cuda
