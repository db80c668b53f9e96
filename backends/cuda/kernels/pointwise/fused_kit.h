// What the source of a fused program (fused_source.h) is put together from: its elements are
// computed by the very functions of the plugin's other pointwise kernels. For kernels that are
// compiled at run time alone, after rtc/prelude.h.
#pragma once

#include <tenon/plugins/sdk/activations.h>
#include <tenon/plugins/sdk/binary_formulas.h>
#include <tenon/plugins/sdk/formulas.h>
#include <tenon/plugins/sdk/special.h>

#include "device/convert.h"
#include "device/divider.h"
#include "device/vector.h"
#include "kernels/pointwise/elements.h"

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

// V elements that lie one behind the other from p on, of which `count` are there; those behind them
// are zero. With `packs`, p is aligned to a pack.
template <int V, class T>
__device__ inline Pack<T, V> load_line(const T* p, uint32_t count, bool packs) {
  if (packs && count == V) return load_pack<V>(p);
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
  if (packs && count == V) return store_pack<V>(p, x);
#pragma unroll
  for (uint32_t v = 0; v < V; ++v)
    if (v < count) p[v] = x.at[v];
}

}  // namespace tenon::cuda::fused
