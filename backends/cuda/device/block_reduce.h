// What the kernels share that fold many values into one, besides the groups of threads that do it:
// how many threads work on a row, rows held in registers, and quick division.
#pragma once

#include <type_traits>

#include "device/groups.h"
#include "device/launch.h"
#include "device/layout.h"
#include "device/vector.h"
#include "runtime/common.h"

namespace tenon::cuda {

constexpr unsigned power_of_two_from(int64_t n) {
  unsigned p = 1;
  while (p < n && p < (1u << 30)) p *= 2;
  return p;
}

inline Divider divider_of(int64_t divisor) {
  if (divisor > INT32_MAX)
    sdk::unsupported("a dimension of {} elements; 2^31 - 1 is the most", divisor);
  return Divider::of(static_cast<uint32_t>(std::max<int64_t>(1, divisor)));
}
// Divides n, which becomes the quotient, and returns the remainder.
__device__ inline int64_t split(int64_t& n, const Divider& by) {
  const int64_t q = n <= INT32_MAX ? by.quotient(static_cast<uint32_t>(n))
                                   : divide_wide(n, by.divisor),
                rest = n - q * by.divisor;
  n = q;
  return rest;
}

// Threads of a block, and lanes that work on one row.
struct GroupShape {
  unsigned block = kBlock, lanes = 32;
  unsigned grid(const tn_device& device, int64_t rows) const {
    // If each block does one row, there may be many blocks: they take no longer than a loop over
    // rows.
    if (lanes == block) return static_cast<unsigned>(std::min<int64_t>(rows, 1 << 20));
    return stride_blocks(device, rows * lanes, block);
  }
};

// Calls f(index, integral_constant of a width) for packs of the row that begins aligned, or for
// single elements.
template <class T, class F>
__device__ void for_row_of(bool packs, int64_t n, unsigned lane, unsigned lanes, F&& f) {
  if (packs) {
    constexpr int V = kFullPack<T>;
#pragma unroll 4
    for (int64_t at = int64_t{lane} * V; at < n; at += int64_t{lanes} * V)
      f(at, std::integral_constant<int, V>{});
  } else {
#pragma unroll 4
    for (int64_t at = lane; at < n; at += lanes) f(at, std::integral_constant<int, 1>{});
  }
}

// A row of at most lanes * V * N elements in registers: pack k of lane l holds the V elements from
// (k * lanes + l) * V on. Rows start at addresses aligned to V elements and are a multiple of
// V long.
template <class T, int V, int N>
struct RowTile {
  static constexpr int kHeld = N * V, kWidth = V;
  T v[kHeld];

  // Calls f(i, at) for packs that are in the row: v[i] and those behind it stand at `at`.
  template <class F>
  __device__ static void for_packs(int64_t n, const Group& group, F&& f) {
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const int64_t at = place(k * V, group);
      if (at < n) f(k * V, at);
    }
  }
  __device__ void load(const T* row, int64_t n, const Group& group, T fill) {
#pragma unroll
    for (T& value : v) value = fill;
    for_packs(n, group, [&](int i, int64_t at) {
      const auto p = load_pack<V>(row + at);
#pragma unroll
      for (int j = 0; j < V; ++j) v[i + j] = p.at[j];
    });
  }
  __device__ void store(T* row, int64_t n, const Group& group) const {
    for_packs(n, group, [&](int i, int64_t at) {
      Pack<T, V> p;
#pragma unroll
      for (int j = 0; j < V; ++j) p.at[j] = v[i + j];
      store_pack<V>(row + at, p);
    });
  }
  // Where v[i] stands in the row; not below its length where the row has ended.
  __device__ static int64_t place(int i, const Group& group) {
    return static_cast<int64_t>((static_cast<unsigned>(i / V) * group.lanes + group.lane) * V +
                                static_cast<unsigned>(i % V));
  }
};

inline constexpr unsigned kMaxThreads = 1024;

// Calls f(RowTile, GroupShape) with the smallest tile for rows of n elements, or f(nullptr,
// GroupShape) where registers do not hold one: then 1024 threads go over it again and again.
// Kernels have __launch_bounds__(kMaxThreads). `aligned`: all rows start at 16 bytes and n is a
// multiple of a pack.
template <class T, class F>
auto with_row_tile(int64_t n, bool aligned, F&& f) {
  constexpr int64_t kHeld = 64 / sizeof(T);  // elements that a thread holds
  if (n <= 4 * 32)
    return f(RowTile<T, 1, 4>{}, GroupShape{kBlock, power_of_two_from(ceil_div(n, 4))});
  if (n > kMaxThreads * kHeld) return f(nullptr, GroupShape{kMaxThreads, kMaxThreads});
  const unsigned lanes = static_cast<unsigned>(ceil_div(n, 32 * kHeld) * 32);
  const GroupShape shape{lanes == 32 ? kBlock : lanes, lanes};
  return aligned ? f(RowTile<T, kFullPack<T>, kHeld / kFullPack<T>>{}, shape)
                 : f(RowTile<T, 1, kHeld>{}, shape);
}

}  // namespace tenon::cuda
