// A loop nest over several tensors of one shape: dimensions that lie one behind the other in every
// tensor are merged, then the nest is walked in two-dimensional tiles, so that kernels see rows and
// transposed operands stay in cache.
#pragma once

#include <tenon/plugins/sdk/nest.h>

#include "runtime/common.h"

namespace tenon::cpu {

inline constexpr int kMaxOperands = sdk::Nest::kMaxOperands;

struct Nest : sdk::Nest {
  using sdk::Nest::Nest;

  // Brings to the last place but one the dimension along which `operand` is contiguous, if the last
  // one is not that.
  void put_rows_along(int operand);
};

// A Nest cut into tiles of at most tile_rows x tile_cols of its two last dimensions.
struct Tiling {
  const Nest& nest;
  int64_t tile_rows, tile_cols;

  int64_t across() const { return (nest.cols() + tile_cols - 1) / tile_cols; }
  int64_t down() const { return (nest.rows() + tile_rows - 1) / tile_rows; }
  int64_t count() const {
    return nest.numel == 0 ? 0 : nest.numel / (nest.rows() * nest.cols()) * across() * down();
  }

  // f(offsets of the tile's first element in each operand, rows, cols) for tiles [begin, end).
  template <class F>
  void walk(int64_t begin, int64_t end, F&& f) const {
    int outer = std::max(nest.rank - 2, 0);
    int64_t index[TN_MAX_RANK] = {}, base[kMaxOperands] = {};
    int64_t a = across(), d = down(), rest = begin / (a * d);
    int64_t tile_col = begin % a, tile_row = begin / a % d;
    for (int k = outer; k-- > 0;) {
      index[k] = rest % nest.shape[k];
      rest /= nest.shape[k];
      for (int o = 0; o < nest.operands; ++o) base[o] += index[k] * nest.strides[o][k];
    }
    for (int64_t tile = begin; tile < end; ++tile) {
      int64_t row = tile_row * tile_rows, col = tile_col * tile_cols, offsets[kMaxOperands];
      for (int o = 0; o < nest.operands; ++o)
        offsets[o] = base[o] + row * nest.row_stride(o) + col * nest.col_stride(o);
      f(offsets, std::min(tile_rows, nest.rows() - row), std::min(tile_cols, nest.cols() - col));
      if (++tile_col < a) continue;
      tile_col = 0;
      if (++tile_row < d) continue;
      tile_row = 0;
      for (int k = outer; k-- > 0;) {
        for (int o = 0; o < nest.operands; ++o) base[o] += nest.strides[o][k];
        if (++index[k] < nest.shape[k]) break;
        for (int o = 0; o < nest.operands; ++o) base[o] -= nest.strides[o][k] * nest.shape[k];
        index[k] = 0;
      }
    }
  }
};

// Moves rows x cols elements of `size` bytes between any strides (in elements). Transposing is done
// in vector registers.
void move_tile(size_t size, void* dst, int64_t dst_row, int64_t dst_col, const void* src,
               int64_t src_row, int64_t src_col, int64_t rows, int64_t cols);

}  // namespace tenon::cpu
