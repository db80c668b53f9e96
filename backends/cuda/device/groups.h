// Groups of threads that fold the values of a row into one. Every order of combining is fixed: same
// bits in every run. For nvcc, and for the kernels that are compiled at run time.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include <cuda_runtime.h>

#include "device/divider.h"

namespace tenon::cuda {

inline constexpr unsigned kFullWarp = 0xffffffffu;

// Elements of 16 bytes.
template <class T>
inline constexpr int kFullPack = 16 / static_cast<int>(sizeof(T));

template <class T>
inline constexpr T kInfinity = std::numeric_limits<T>::infinity();
template <class T>
inline constexpr T kNan = std::numeric_limits<T>::quiet_NaN();

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

}  // namespace tenon::cuda
