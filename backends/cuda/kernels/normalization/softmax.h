// What softmax and cross_entropy share: the running maximum and sum of exponentials of a row.
#pragma once

#include "device/block_reduce.h"
#include "device/exponential.h"

namespace tenon::cuda {

// The largest of the elements taken and the sum of exp(element - top) over them. While there is
// nothing above -inf the sum is 0, or NaN if one was among them.
template <class T>
struct LogSum {
  T top = -kInfinity<T>, sum = 0;

  __device__ void take(T x) {
    if (x <= top) {
      // The usual case first; -inf - -inf must not come up.
      if (top > -kInfinity<T>) sum += exp_of(x - top);
    } else {
      sum = x == x ? sum * exp_of(top - x) + exp_of(x - x) : x;
      top = x == x ? x : top;
    }
  }
  // A pack: its own maximum first, so that the sum is scaled once.
  template <int N>
  __device__ void take(const T (&x)[N]) {
    T most = x[0];
#pragma unroll
    for (int i = 1; i < N; ++i) most = x[i] > most ? x[i] : most;
    if (most > top) {
      sum *= exp_of(top - most);
      top = most;
    }
#pragma unroll
    for (int i = 0; i < N; ++i)
      if (top > -kInfinity<T> || x[i] != x[i]) sum += exp_of(x[i] - top);
  }
  // The sum as it is with a larger top.
  __device__ T sum_below(T other) const {
    if (other == -kInfinity<T>) return exp_of(other - other);  // all of the row is -inf: NaN
    return top == -kInfinity<T> ? sum : sum * exp_of(top - other);
  }
};

// Returns the sum over the whole row to all threads of the group.
template <class T>
__device__ LogSum<T> group_log_sum(LogSum<T> mine, const Group& group, T* shared) {
  LogSum<T> all;
  all.top = group.reduce(mine.top, Larger{}, shared);
  all.sum = group.reduce(mine.sum_below(all.top), Add{}, shared);
  return all;
}

}  // namespace tenon::cuda
