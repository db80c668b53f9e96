// How the tensors of a fused program are cut into tiles that stay in the first-level cache.
#pragma once

#include <array>
#include <vector>

#include <tenon/plugins/sdk/requests/fused.h>

#include "runtime/nest.h"

namespace tenon::cpu {

// Does for any number of tensors of one shape what sdk::Nest does for a few: dimensions that are
// contiguous in all of them are joined. An entry of `tensors` is NULL for an output that is not
// wanted. With `keep_rows`, the last dimension is never joined or dropped, even if it has size 1.
class FusedTiles {
 public:
  static constexpr size_t kMax = sdk::FusedLimits::kMaxInputs + sdk::FusedLimits::kMaxOutputs;

  explicit FusedTiles(std::span<const tn_tensor_desc* const> tensors, bool keep_rows = false);

  // Chooses tiles of at most `elements`, in rows and columns of the last two dimensions.
  void cut(int64_t elements);
  // Chooses tiles of so many rows.
  void cut_rows(int64_t rows);
  // How a tile lies in memory: its elements follow one another in the order of rows, or it is one
  // value, or neither.
  enum class Access { line, single, scattered };
  Access access(size_t tensor) const;

  int64_t numel() const { return numel_; }
  int64_t count() const { return outer() * across() * down(); }
  int64_t tile_rows() const { return tile_rows_; }
  int64_t tile_cols() const { return tile_cols_; }
  int64_t tile_elements() const { return tile_rows_ * tile_cols_; }
  int64_t row_stride(size_t tensor) const { return rank_ > 1 ? strides_[tensor][rank_ - 2] : 0; }
  int64_t col_stride(size_t tensor) const { return rank_ > 0 ? strides_[tensor][rank_ - 1] : 0; }
  // Returns all numbers of elements that tiles have: whole tiles, and those at the edges.
  std::vector<int64_t> sizes() const;

  // f(offsets of the tile's first element in each tensor, rows, cols) for tiles [begin, end).
  template <class F>
  void walk(int64_t begin, int64_t end, F&& f) const {
    for (int64_t tile = begin; tile < end; ++tile) {
      int64_t rest = tile;
      const int64_t col = rest % across() * tile_cols_;
      rest /= across();
      const int64_t row = rest % down() * tile_rows_;
      rest /= down();
      int64_t index[TN_MAX_RANK] = {}, offsets[kMax];
      for (int d = rank_ - 2; d-- > 0; rest /= shape_[d]) index[d] = rest % shape_[d];
      for (size_t t = 0; t < strides_.size(); ++t) {
        offsets[t] = row * row_stride(t) + col * col_stride(t);
        for (int d = 0; d < rank_ - 2; ++d) offsets[t] += index[d] * strides_[t][d];
      }
      f(offsets, std::min(tile_rows_, rows() - row), std::min(tile_cols_, cols() - col));
    }
  }

 private:
  using Strides = std::array<int64_t, TN_MAX_RANK>;

  void merge(bool keep_rows);
  void put_rows_along(size_t tensor);
  int64_t rows() const { return rank_ > 1 ? shape_[rank_ - 2] : 1; }
  int64_t cols() const { return rank_ > 0 ? shape_[rank_ - 1] : 1; }
  int64_t across() const { return (cols() + tile_cols_ - 1) / tile_cols_; }
  int64_t down() const { return (rows() + tile_rows_ - 1) / tile_rows_; }
  int64_t outer() const { return numel_ == 0 ? 0 : numel_ / (rows() * cols()); }

  int rank_ = 0;
  int64_t numel_ = 1, tile_rows_ = 1, tile_cols_ = 1;
  int64_t shape_[TN_MAX_RANK];
  std::vector<Strides> strides_;
};

}  // namespace tenon::cpu
