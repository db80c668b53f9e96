// What the kernels share that fold many values into one: groups of threads that work on one row and
// their reductions, rows held in registers, and quick division. Every order of combining is fixed:
// same bits in every run.
#pragma once

#include <limits>
#include <type_traits>

#include "device/launch.h"
#include "device/layout.h"
#include "device/vector.h"
#include "runtime/common.h"

namespace tenon::cuda {

inline constexpr unsigned kFullWarp = 0xffffffffu;

// Elements of 16 bytes.
template <class T>
inline constexpr int kFullPack = 16 / static_cast<int>(sizeof(T));

template <class T>
inline constexpr T kInfinity = std::numeric_limits<T>::infinity();
template <class T>
inline constexpr T kNan = std::numeric_limits<T>::quiet_NaN();

constexpr unsigned power_of_two_from(int64_t n) {
  unsigned p = 1;
  while (p < n && p < (1u << 30)) p *= 2;
  return p;
}

// a / b of numbers that are not negative. 64-bit division costs about a hundred instructions: only
// where it must be, and not in the middle of a kernel.
__device__ __attribute__((noinline)) inline int64_t divide_wide(int64_t a, int64_t b) {
  return a / b;
}
__device__ inline int64_t divide(int64_t a, int64_t b) {
  if (((static_cast<uint64_t>(a) | static_cast<uint64_t>(b)) >> 32) == 0)
    return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
  return divide_wide(a, b);
}

inline Divider divider_of(int64_t divisor) {
  if (divisor > INT32_MAX)
    sdk::unsupported("a dimension of {} elements; 2^31 - 1 is the most", divisor);
  return Divider::of(static_cast<uint32_t>(std::max<int64_t>(1, divisor)));
}
// n becomes the quotient; the remainder is returned.
__device__ inline int64_t split(int64_t& n, const Divider& by) {
  const int64_t q = n <= INT32_MAX ? by.quotient(static_cast<uint32_t>(n))
                                   : divide_wide(n, by.divisor),
                rest = n - q * by.divisor;
  n = q;
  return rest;
}

struct Add {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
// The larger; a NaN wins.
struct Larger {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return ((b > a) | (b != b)) ? b : a;
  }
};

template <class T>
__device__ T shuffle_xor(T value, unsigned mask) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(__shfl_xor_sync(kFullWarp, value, static_cast<int>(mask)));
  else
    return value.shuffled(mask);
}

// Over each aligned group of `lanes` lanes (a power of two). All 32 lanes must arrive. Every lane
// gets a result; where `op` is not symmetric to the last bit, lane 0's is the one to use.
template <class T, class Op>
__device__ T warp_reduce(T value, Op op, unsigned lanes = 32) {
  for (unsigned mask = lanes / 2; mask > 0; mask /= 2) value = op(value, shuffle_xor(value, mask));
  return value;
}

// Over the block, for every thread. `shared` has room for one T a warp, and may be used again at
// once.
template <class T, class Op>
__device__ T block_reduce(T value, Op op, T* shared) {
  value = warp_reduce(value, op);
  const unsigned warps = blockDim.x / 32;
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  T total = shared[0];
  for (unsigned w = 1; w < warps; ++w) total = op(total, shared[w]);
  return total;
}

// The threads that work on one row: 1, 2, 4 … 32 lanes of a warp, or the block. Kernels go over
// rows with
//   for (int64_t turn = 0; turn < group.turns(rows); ++turn) …
// because all lanes of a warp must make the same turns; a group whose row lies beyond the last one
// works on the last and writes nothing.
struct Group {
  unsigned lane, lanes;
  int64_t index, count;  // of this group in the grid; groups in the grid

  __device__ static Group of(unsigned lanes) {
    const unsigned in_block = blockDim.x / lanes;
    return {threadIdx.x % lanes, lanes, int64_t{blockIdx.x} * in_block + threadIdx.x / lanes,
            int64_t{gridDim.x} * in_block};
  }
  __device__ int64_t turns(int64_t rows) const { return divide(rows + count - 1, count); }
  template <class T, class Op>
  __device__ T reduce(T value, Op op, T* shared) const {
    return lanes <= 32 ? warp_reduce(value, op, lanes) : block_reduce(value, op, shared);
  }
};

// Threads of a block, and lanes that work on one row.
struct GroupShape {
  unsigned block = kBlock, lanes = 32;
  unsigned grid(const tn_device& device, int64_t rows) const {
    // Blocks that do a row each may be many: they are as good a queue as a loop.
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

inline constexpr unsigned kMostThreads = 1024;

// Calls f(RowTile, GroupShape) with the smallest tile for rows of n elements, or f(nullptr,
// GroupShape) where registers do not hold one: then 1024 threads go over it again and again.
// Kernels have __launch_bounds__(kMostThreads). `aligned`: all rows start at 16 bytes and n is a
// multiple of a pack.
template <class T, class F>
auto with_row_tile(int64_t n, bool aligned, F&& f) {
  constexpr int64_t kHeld = 64 / sizeof(T);  // elements that a thread holds
  if (n <= 4 * 32)
    return f(RowTile<T, 1, 4>{}, GroupShape{kBlock, power_of_two_from(ceil_div(n, 4))});
  if (n > kMostThreads * kHeld) return f(nullptr, GroupShape{kMostThreads, kMostThreads});
  const unsigned lanes = static_cast<unsigned>(ceil_div(n, 32 * kHeld) * 32);
  const GroupShape shape{lanes == 32 ? kBlock : lanes, lanes};
  return aligned ? f(RowTile<T, kFullPack<T>, kHeld / kFullPack<T>>{}, shape)
                 : f(RowTile<T, 1, kHeld>{}, shape);
}

}  // namespace tenon::cuda
