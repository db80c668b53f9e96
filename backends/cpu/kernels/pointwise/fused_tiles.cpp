#include "kernels/pointwise/fused_tiles.h"

namespace tenon::cpu {

namespace {
// Where a tensor is read across its rows, a tile has as many columns: what is read of each row is
// whole lines of the cache.
constexpr int64_t kAcross = 64;
}  // namespace

FusedTiles::FusedTiles(std::span<const tn_tensor_desc* const> tensors, bool keep_rows)
    : strides_(tensors.size()) {
  const tn_tensor_desc& first =
      **std::find_if(tensors.begin(), tensors.end(), [](auto* t) { return t != nullptr; });
  for (uint32_t d = 0; d < first.rank; ++d) {
    numel_ *= first.shape[d];
    if (first.shape[d] == 1 && !(keep_rows && d + 1 == first.rank)) continue;
    shape_[rank_] = first.shape[d];
    for (size_t t = 0; t < tensors.size(); ++t)
      strides_[t][static_cast<size_t>(rank_)] = tensors[t] ? tensors[t]->strides[d] : 0;
    ++rank_;
  }
  merge(keep_rows);
}

void FusedTiles::merge(bool keep_rows) {
  if (rank_ == 0) return;
  int last = 0;
  for (int d = 1; d < rank_; ++d) {
    const auto here = static_cast<size_t>(d);
    const bool behind = !(keep_rows && d + 1 == rank_) &&
                        std::all_of(strides_.begin(), strides_.end(), [&](const Strides& s) {
                          return s[static_cast<size_t>(last)] == s[here] * shape_[d];
                        });
    if (!behind) ++last;
    shape_[last] = behind ? shape_[last] * shape_[d] : shape_[d];
    for (auto& s : strides_) s[static_cast<size_t>(last)] = s[here];
  }
  rank_ = last + 1;
}

// Brings the dimension along which the tensor is contiguous to the last place but one.
void FusedTiles::put_rows_along(size_t tensor) {
  for (int d = 0; d < rank_ - 2; ++d) {
    if (strides_[tensor][static_cast<size_t>(d)] != 1) continue;
    std::rotate(shape_ + d, shape_ + d + 1, shape_ + rank_ - 1);
    for (auto& s : strides_) std::rotate(s.begin() + d, s.begin() + d + 1, s.begin() + rank_ - 1);
    return;
  }
}

void FusedTiles::cut(int64_t elements) {
  tile_rows_ = 1;
  tile_cols_ = std::max<int64_t>(1, std::min(cols(), elements));
  if (rank_ < 2) return;
  for (size_t t = 0; t < strides_.size(); ++t)
    if (col_stride(t) > 1) {
      put_rows_along(t);
      tile_cols_ = std::min({cols(), elements, kAcross});
      break;
    }
  if (tile_cols_ == cols() || tile_cols_ == kAcross)
    tile_rows_ = std::clamp<int64_t>(elements / tile_cols_, 1, rows());
}

void FusedTiles::cut_rows(int64_t most) {
  tile_rows_ = std::min(most, rows());
  tile_cols_ = cols();
}

FusedTiles::Access FusedTiles::access(size_t tensor) const {
  const int64_t row = row_stride(tensor), col = col_stride(tensor);
  if (tile_elements() == 1 ||
      (col == 1 && (tile_rows_ == 1 || (tile_cols_ == cols() && row == cols()))))
    return Access::line;
  return col == 0 && (tile_rows_ == 1 || row == 0) ? Access::single : Access::scattered;
}

std::vector<int64_t> FusedTiles::sizes() const {
  std::vector<int64_t> found;
  for (const int64_t r : {tile_rows_, rows() % tile_rows_})
    for (const int64_t c : {tile_cols_, cols() % tile_cols_})
      if (r > 0 && c > 0 && std::find(found.begin(), found.end(), r * c) == found.end())
        found.push_back(r * c);
  return found;
}

}  // namespace tenon::cpu
