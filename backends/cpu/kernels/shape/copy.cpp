// Copies and casts.
#include "kernels/shape/copy.h"

#include <cstring>

#include "simd/copy.h"

namespace tenon::cpu {

namespace {
constexpr int64_t kCopyGrain = 256 * 1024;  // bytes
constexpr int64_t kTileBytes = 32 * 1024;
constexpr int64_t kConvertTile = 1024;
}  // namespace

void copy_bytes(void* to, const void* from, int64_t bytes) {
  parallel_for(bytes, kCopyGrain, [=](int64_t begin, int64_t end, uint32_t) {
    copy_row(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin, end - begin);
  });
}

void zero_bytes(void* to, int64_t bytes) {
  parallel_for(bytes, kCopyGrain, [=](int64_t begin, int64_t end, uint32_t) {
    std::memset(static_cast<char*>(to) + begin, 0, static_cast<size_t>(end - begin));
  });
}

StridedCopy::StridedCopy(const tn_tensor_desc& to, const tn_tensor_desc& from)
    : nest_(Nest({&to, &from})),
      to_size_(static_cast<int64_t>(sdk::dtype_size(to.dtype))),
      from_size_(static_cast<int64_t>(sdk::dtype_size(from.dtype))) {
  if (to.dtype != from.dtype) convert_ = convert_row(to.dtype, from.dtype);
  nest_.sort();
  nest_.put_rows_along(1);
  contiguous_ =
      nest_.rank == 0 || (nest_.rank == 1 && nest_.col_stride(0) == 1 && nest_.col_stride(1) == 1);
  // Tiles walk along the contiguous side of both operands where these differ.
  const bool transposes = nest_.rank > 1 && nest_.col_stride(1) > 1;
  const int64_t elements = convert_ ? kConvertTile : kTileBytes / to_size_;
  tile_cols_ = std::max<int64_t>(1, std::min(nest_.cols(), transposes ? 64 : elements));
  tile_rows_ = std::clamp<int64_t>(elements / tile_cols_, 1, std::max<int64_t>(1, nest_.rows()));
}

void StridedCopy::run(void* to, const void* from) const {
  if (nest_.numel == 0) return;
  auto* y = static_cast<char*>(to);
  auto* x = static_cast<const char*>(from);
  if (contiguous_ && !convert_) return copy_bytes(to, from, nest_.numel * to_size_);
  if (contiguous_)
    return parallel_for(nest_.numel, kGrain, [&](int64_t begin, int64_t end, uint32_t) {
      convert_(end - begin, y + begin * to_size_, x + begin * from_size_);
    });
  Tiling tiling{nest_, tile_rows_, tile_cols_};
  int64_t count = tiling.count(), grain = std::max<int64_t>(1, kGrain * count / nest_.numel);
  parallel_for(count, grain,
               [&](int64_t begin, int64_t end, uint32_t) { run_tiles(tiling, y, x, begin, end); });
}

// Where the dtype changes, tiles are gathered, converted, and scattered.
void StridedCopy::run_tiles(const Tiling& tiling, char* to, const char* from, int64_t begin,
                            int64_t end) const {
  alignas(64) char gathered[kConvertTile * 8], converted[kConvertTile * 8];
  tiling.walk(begin, end, [&](const int64_t* offsets, int64_t rows, int64_t cols) {
    char* y = to + offsets[0] * to_size_;
    const char* x = from + offsets[1] * from_size_;
    if (!convert_)
      return move_tile(static_cast<size_t>(to_size_), y, nest_.row_stride(0), nest_.col_stride(0),
                       x, nest_.row_stride(1), nest_.col_stride(1), rows, cols);
    move_tile(static_cast<size_t>(from_size_), gathered, cols, 1, x, nest_.row_stride(1),
              nest_.col_stride(1), rows, cols);
    convert_(rows * cols, converted, gathered);
    move_tile(static_cast<size_t>(to_size_), y, nest_.row_stride(0), nest_.col_stride(0), converted,
              cols, 1, rows, cols);
  });
}

uint64_t StridedCopy::cost_ns() const {
  const double ns = !convert_     ? contiguous_ ? 0.1 * static_cast<double>(to_size_) / 2 : 0.7
                    : contiguous_ ? 0.5
                                  : 1.5;
  return 20 + static_cast<uint64_t>(ns * static_cast<double>(nest_.numel));
}

namespace {

tn_plan* make_copy(tn_device*, const Request& request) {
  StridedCopy copy(request.output(0), request.input(0));
  return sdk::make_plan([copy](const tn_run& run) { copy.run(run.outputs[0], run.inputs[0]); },
                        {0, copy.cost_ns()});
}
const sdk::Kernel copies({"copy"}, make_copy);

}  // namespace
}  // namespace tenon::cpu
