#include "kernels/pointwise/fused_layout.h"

#include <algorithm>

namespace tenon::cuda {
namespace {

using Access = FusedLayout::Access;
using Piece = FusedLayout::Piece;

constexpr int64_t kMaxOffset = int64_t{1} << 31;
constexpr size_t kMaxPieces = 256;
constexpr int kMaxPerThread = 8, kMaxNestedPerThread = 4;

Access access_of(const tn_tensor_desc& d, const tn_tensor_desc& whole) {
  bool line = true, one = true;
  for (uint32_t k = 0; k < whole.rank; ++k) {
    if (whole.shape[k] == 1) continue;
    line = line && d.strides[k] == whole.strides[k];
    one = one && d.strides[k] == 0;
    if (d.strides[k] < 0) sdk::unsupported("strides below 0 are not taken in a program");
  }
  return one ? Access::one : line ? Access::line : Access::nested;
}

// The dimensions of the nest: those of size 1 are gone, and those that lie one behind the other in
// every nested input are one.
void find_nest(FusedLayout& layout, const std::vector<tn_tensor_desc>& inputs,
               const tn_tensor_desc& whole, std::vector<int64_t>& sizes) {
  layout.strides.resize(inputs.size());
  for (uint32_t d = 0; d < whole.rank; ++d) {
    if (whole.shape[d] == 1) continue;
    bool behind = !sizes.empty();
    for (size_t i = 0; behind && i < inputs.size(); ++i)
      behind = !FusedLayout::is_nested(layout.inputs[i]) ||
               layout.strides[i].back() == inputs[i].strides[d] * whole.shape[d];
    if (behind)
      sizes.back() *= whole.shape[d];
    else
      sizes.push_back(whole.shape[d]);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!behind) layout.strides[i].push_back(0);
      if (FusedLayout::is_nested(layout.inputs[i])) layout.strides[i].back() = inputs[i].strides[d];
    }
  }
  layout.rank = static_cast<int>(sizes.size());
}

bool fits(const FusedLayout& layout, const Piece& piece) {
  if (piece.numel >= kMaxOffset) return false;
  for (auto& strides : layout.strides) {
    int64_t last = 0;
    for (size_t d = 0; d < strides.size(); ++d) last += strides[d] * (piece.sizes[d] - 1);
    if (last >= kMaxOffset) return false;
  }
  return true;
}

// In halves of the outermost dimension, so that lines stay lines.
void cut_piece(FusedLayout& layout, Piece piece) {
  if (fits(layout, piece)) {
    layout.pieces.push_back(std::move(piece));
    if (layout.pieces.size() > kMaxPieces)
      sdk::unsupported("strides lead too far apart for a program");
    return;
  }
  const auto outermost =
      std::find_if(piece.sizes.begin(), piece.sizes.end(), [](int64_t size) { return size > 1; });
  const auto d = static_cast<size_t>(outermost - piece.sizes.begin());
  const int64_t size = *outermost, half = size / 2, each = piece.numel / size;
  Piece high = piece;
  piece.sizes[d] = half;
  piece.numel = half * each;
  high.sizes[d] = size - half;
  high.numel = (size - half) * each;
  high.first += piece.numel;
  for (size_t i = 0; i < layout.inputs.size(); ++i) {
    if (layout.inputs[i] == Access::line) high.base[i] += piece.numel;
    if (FusedLayout::is_nested(layout.inputs[i])) high.base[i] += half * layout.strides[i][d];
  }
  cut_piece(layout, std::move(piece));
  cut_piece(layout, std::move(high));
}

// As many as a load of 16 bytes brings of the widest tensor.
int per_thread(const sdk::FusedRequest& program, const FusedLayout& layout, int64_t row) {
  size_t widest = 1;
  for (const tn_dtype dtype : program.input_dtypes)
    widest = std::max(widest, sdk::dtype_size(dtype));
  for (const uint32_t step : program.results)
    widest = std::max(widest, sdk::dtype_size(program.steps[step].dtype));
  int count = std::min(16 / static_cast<int>(widest), kMaxPerThread);
  if (layout.rank == 0) return count;
  for (count = std::min(count, kMaxNestedPerThread); row % count != 0;) count /= 2;
  return count;
}

}  // namespace

FusedLayout FusedLayout::of(const sdk::FusedRequest& program, const sdk::Request& request) {
  for (size_t i = 0; i < request.num_outputs(); ++i)
    if (request.has_output(i)) sdk::require_contiguous(request.output(i));
  FusedLayout layout;
  std::vector<tn_tensor_desc> inputs;
  bool nested = false;
  for (size_t i = 0; i < request.num_inputs(); ++i) {
    inputs.push_back(program.expanded(request.input(i)));
    layout.inputs.push_back(access_of(inputs.back(), program.whole));
    nested = nested || is_nested(layout.inputs.back());
  }
  Piece whole{sdk::numel(program.whole), 0, std::vector<int64_t>(inputs.size()), {}};
  if (nested)
    find_nest(layout, inputs, program.whole, whole.sizes);
  else
    layout.strides.resize(inputs.size());
  const int64_t row = whole.sizes.empty() ? 1 : whole.sizes.back();
  for (size_t i = 0; i < inputs.size(); ++i)
    if (is_nested(layout.inputs[i])) {
      const int64_t step = layout.strides[i].back();
      layout.inputs[i] = step == 1   ? Access::nested_line
                         : step == 0 ? Access::nested_one
                                     : Access::nested;
    }
  layout.per_thread = cuda::per_thread(program, layout, row);
  // Without a nest, the elements are its one dimension.
  if (!nested) {
    whole.sizes = {whole.numel};
    for (auto& strides : layout.strides) strides = {0};
  }
  cut_piece(layout, std::move(whole));
  return layout;
}

}  // namespace tenon::cuda
