// Count, mean and sum of squared deviations, combined as Chan, Golub and LeVeque do (1979): one pass over memory, no cancellation.
#pragma once

#include "block_reduce.h"

namespace tenon::cuda {

struct Moments {
  double n, mean, m2;
  __device__ Moments shuffled(unsigned mask) const {
    return {shuffle_xor(n, mask), shuffle_xor(mean, mask), shuffle_xor(m2, mask)};
  }
};

__device__ inline Moments combine(const Moments& a, const Moments& b) {
  if (a.n == 0) return b;
  if (b.n == 0) return a;
  const double n = a.n + b.n, part = b.n / n, delta = b.mean - a.mean;
  return {n, a.mean + delta * part, a.m2 + b.m2 + delta * delta * a.n * part};
}

// The reducer (see reduce.h) without its end.
template <class T>
struct MomentsOf {
  using In = T;
  using Acc = Moments;
  static constexpr int kInputs = 1, kLoad = kFullPack<T>;
  __device__ static Moments init() { return {0, 0, 0}; }
  __device__ static Moments combine(const Moments& a, const Moments& b) { return cuda::combine(a, b); }
  // Those at hand are read twice: for their mean, then for the deviations from it.
  template <int N>
  __device__ static void take(Moments& acc, const T* x, const T*, T, int64_t, int64_t) {
    double mean = 0, m2 = 0;
#pragma unroll
    for (int k = 0; k < N; ++k) mean += static_cast<double>(x[k]);
    mean /= N;
#pragma unroll
    for (int k = 0; k < N; ++k) m2 += (static_cast<double>(x[k]) - mean) * (static_cast<double>(x[k]) - mean);
    acc = combine(acc, {static_cast<double>(N), mean, m2});
  }
};

}  // namespace tenon::cuda
