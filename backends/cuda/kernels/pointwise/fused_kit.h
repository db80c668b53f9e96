// The parts of which the source of a fused program (fused_source.h) is made. Its elements are
// computed by the same functions as in the plugin's other pointwise kernels. Only kernels that are
// compiled at run time include this, after rtc/prelude.h.
#pragma once

#include <tenon/plugins/sdk/activations.h>
#include <tenon/plugins/sdk/binary_formulas.h>
#include <tenon/plugins/sdk/formulas.h>
#include <tenon/plugins/sdk/special.h>

#include "device/convert.h"
#include "device/divider.h"
#include "device/groups.h"
#include "device/vector.h"
#include "kernels/pointwise/elements.h"
#include "kernels/reduction/reducers.h"

namespace tenon::cuda::fused {

namespace formulas = sdk::formulas;
using namespace elements;

inline constexpr uint32_t kThreads = 256;

// One member on one element of each operand; its result is rounded to its dtype.
template <class Out, class Op, class... T>
__device__ inline Out apply(const Op& op, const T&... x) {
  return cast<Out>(op(widen(x)...));
}

// A number in the place of a last operand.
template <class T>
__device__ inline Computed<T> number(const tn_scalar& s) {
  if constexpr (std::is_floating_point_v<Computed<T>>)
    return static_cast<Computed<T>>(s.f);
  else
    return static_cast<Computed<T>>(s.i);
}
__device__ inline uint8_t truth(const tn_scalar& s) { return s.i != 0; }

// V elements that lie one behind the other from p on. `count` elements are there, which may be more
// than V; in the place of those that are not, there is zero. With `packs`, p is aligned to a pack.
template <int V, class T>
__device__ inline Pack<T, V> load_line(const T* p, uint32_t count, bool packs) {
  if (packs && count >= V) return load_pack<V>(p);
  Pack<T, V> x;
#pragma unroll
  for (uint32_t v = 0; v < V; ++v) x.at[v] = v < count ? p[v] : T{};
  return x;
}
template <int V, class T>
__device__ inline Pack<T, V> load_steps(const T* p, uint32_t step, uint32_t count) {
  Pack<T, V> x;
#pragma unroll
  for (uint32_t v = 0; v < V; ++v) x.at[v] = v < count ? p[v * step] : T{};
  return x;
}
// One element for all.
template <int V, class T>
__device__ inline Pack<T, V> load_one(const T* p) {
  const T value = *p;
  Pack<T, V> x;
#pragma unroll
  for (int v = 0; v < V; ++v) x.at[v] = value;
  return x;
}
template <int V, class T>
__device__ inline void store_line(T* p, uint32_t count, bool packs, const Pack<T, V>& x) {
  if (packs && count >= V) return store_pack<V>(p, x);
#pragma unroll
  for (uint32_t v = 0; v < V; ++v)
    if (v < count) p[v] = x.at[v];
}

// ---- rows

// Elements 0 … n - 1 of a row, `element(i)` each, are folded by the lanes of a group in the order
// in which reduce_rows (kernels/reduction/reduce.h) folds a row of these values: in packs of V,
// four of them ahead.
template <class R, int V, class F>
__device__ inline typename LocalOf<R>::type fold_elements(const Group& group, int64_t n,
                                                          F&& element) {
  using In = typename R::In;
  constexpr int kAhead = 4;
  auto local = LocalOf<R>::init();
  const int64_t step = int64_t{group.lanes} * V;
  int64_t i = int64_t{group.lane} * V;
  for (; i + (kAhead - 1) * step + V <= n; i += kAhead * step) {
    In x[kAhead * V];
#pragma unroll
    for (int k = 0; k < kAhead * V; ++k) x[k] = element(i + k / V * step + k % V);
    if constexpr (V == 1) {
      R::template take<kAhead>(local, x, x, In(0), i, step);
    } else {
#pragma unroll
      for (int u = 0; u < kAhead; ++u)
        R::template take<V>(local, x + u * V, x + u * V, In(0), i + u * step, 1);
    }
  }
  for (; i + V <= n; i += step) {
    In x[V];
#pragma unroll
    for (int k = 0; k < V; ++k) x[k] = element(i + k);
    R::template take<V>(local, x, x, In(0), i, 1);
  }
  if constexpr (V > 1)
    for (i = n - n % V + group.lane; i < n; i += group.lanes) {
      const In x = element(i);
      R::template take<1>(local, &x, &x, In(0), i, 1);
    }
  return local;
}

// The result for every lane. `shared` has room for one accumulator per warp.
template <class R, int V, class F>
__device__ inline typename R::Out reduce_row(const Group& group, int64_t n, double parameter,
                                             void* shared, F&& element) {
  using Acc = typename R::Acc;
  using Out = typename R::Out;
  const auto local = fold_elements<R, V>(group, n, element);
  const Acc acc = group.reduce(LocalOf<R>::settle(local), Combine<R>{}, static_cast<Acc*>(shared));
  const Out out = R::finish(acc, parameter);
  if (group.lanes > 32) return out;
  return static_cast<Out>(__shfl_sync(kFullWarp, out, 0, static_cast<int>(group.lanes)));
}

// All lanes have read what one of them overwrites next.
__device__ inline void wait_for_group(const Group& group) {
  if (group.lanes > 32)
    __syncthreads();
  else
    __syncwarp();
}

}  // namespace tenon::cuda::fused
