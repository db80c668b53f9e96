// Where the elements of several operands of one shape lie. The host merges dimensions that lie one
// behind the other in every operand and cuts what 32-bit arithmetic cannot address; a kernel turns
// an element's number into one offset an operand.
#pragma once

#include <cstdint>
#include <vector>

#include <cuda_runtime.h>

#include <tenon/plugins/sdk/nest.h>

#include "device/divider.h"

namespace tenon::cuda {

inline constexpr int kMaxOperands = sdk::Nest::kMaxOperands;
inline constexpr int kMaxDims = static_cast<int>(TN_MAX_RANK);

// What a kernel gets, as a __grid_constant__. Innermost dimension first.
template <int N>
struct Layout {
  int32_t rank;
  uint32_t numel;
  Divider size[kMaxDims];
  uint32_t strides[N][kMaxDims];  // in elements

  // Computes the offsets of elements first, first + step, … counted with the innermost dimension
  // running fastest; those at numel and beyond may be anything.
  template <int M>
  __device__ void offsets(uint32_t first, uint32_t step, uint32_t (&offset)[M][N]) const {
    uint32_t left[M];
#pragma unroll
    for (int m = 0; m < M; ++m) {
      left[m] = first + static_cast<uint32_t>(m) * step;
#pragma unroll
      for (int k = 0; k < N; ++k) offset[m][k] = 0;
    }
#pragma unroll 1
    for (int d = 0; d < rank; ++d) {
      Divider by = size[d];
      bool last = d == rank - 1;
#pragma unroll
      for (int m = 0; m < M; ++m) {
        uint32_t rest = last ? 0 : by.quotient(left[m]), index = left[m] - rest * by.divisor;
#pragma unroll
        for (int k = 0; k < N; ++k) offset[m][k] += index * strides[k][d];
        left[m] = rest;
      }
    }
  }
  // The same for element `first` and those behind it in its row of the innermost dimension.
  template <int M>
  __device__ void row_offsets(uint32_t first, uint32_t (&offset)[M][N]) const {
    uint32_t start[1][N];
    offsets(first, 0, start);
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
      for (int k = 0; k < N; ++k)
        offset[m][k] = start[0][k] + static_cast<uint32_t>(m) * strides[k][0];
  }
};

// The same on the host, outermost dimension first.
struct Nest : sdk::Nest {
  using sdk::Nest::Nest;

  int64_t base[kMaxOperands] = {};  // offset of the first element: not 0 in pieces only

  // Where operand 0 runs along one dimension and another operand along a second one, makes the walk
  // one of square tiles: each line of memory is then used up while it is in cache.
  void tile();

  // Whether operand k lies row-major without gaps.
  bool contiguous(int operand) const {
    return rank == 0 || (rank == 1 && strides[operand][0] == 1);
  }
  // The largest power of two up to 16 that divides the innermost size, or all strides of operand k
  // but the innermost.
  int64_t cols_multiple() const;
  int64_t rows_multiple(int operand) const;

  // Parts of fewer than 2^31 elements with all offsets below 2^31.
  std::vector<Nest> pieces() const;

  template <int N>
  Layout<N> layout() const {
    Layout<N> l{};
    l.rank = rank;
    l.numel = static_cast<uint32_t>(numel);
    for (int d = 0; d < rank; ++d) {
      l.size[d] = Divider::of(static_cast<uint32_t>(shape[rank - 1 - d]));
      for (int k = 0; k < N; ++k) l.strides[k][d] = static_cast<uint32_t>(strides[k][rank - 1 - d]);
    }
    return l;
  }
};

}  // namespace tenon::cuda
