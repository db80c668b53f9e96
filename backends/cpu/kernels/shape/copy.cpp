// Copies, casts and what is made of copies: cat, slice_backward.
#include "kernels/shape/copy.h"

#include <cstring>

#include <tenon/plugins/sdk/dims.h>

#include "simd/convert.h"

namespace tenon::cpu {

namespace {
constexpr int64_t kCopyGrain = 256 * 1024;  // bytes
constexpr int64_t kTileBytes = 32 * 1024;
constexpr int64_t kConvertTile = 1024;

// Tiles that walk along the contiguous side of both operands where these differ.
void choose_tile(const Nest& nest, int64_t elements, int64_t& rows, int64_t& cols) {
  bool transposes = nest.rank > 1 && nest.col_stride(1) > 1;
  cols = std::max<int64_t>(1, std::min(nest.cols(), transposes ? 64 : elements));
  rows = std::clamp<int64_t>(elements / cols, 1, std::max<int64_t>(1, nest.rows()));
}
}  // namespace

void copy_bytes(void* to, const void* from, int64_t bytes) {
  parallel_for(bytes, kCopyGrain, [=](int64_t begin, int64_t end, uint32_t) {
    std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin,
                static_cast<size_t>(end - begin));
  });
}

void zero_bytes(void* to, int64_t bytes) {
  parallel_for(bytes, kCopyGrain, [=](int64_t begin, int64_t end, uint32_t) {
    std::memset(static_cast<char*>(to) + begin, 0, static_cast<size_t>(end - begin));
  });
}

StridedCopy::StridedCopy(const tn_tensor_desc& to, const tn_tensor_desc& from)
    : nest_(Nest({&to, &from})), size_(static_cast<int64_t>(sdk::dtype_size(to.dtype))) {
  nest_.sort();
  nest_.put_rows_along(1);
  contiguous_ =
      nest_.rank == 0 || (nest_.rank == 1 && nest_.col_stride(0) == 1 && nest_.col_stride(1) == 1);
  choose_tile(nest_, kTileBytes / size_, tile_rows_, tile_cols_);
}

void StridedCopy::run(void* to, const void* from) const {
  if (nest_.numel == 0) return;
  if (contiguous_) return copy_bytes(to, from, nest_.numel * size_);
  Tiling tiling{nest_, tile_rows_, tile_cols_};
  int64_t count = tiling.count(), grain = std::max<int64_t>(1, kGrain * count / nest_.numel);
  parallel_for(count, grain, [&](int64_t begin, int64_t end, uint32_t) {
    tiling.walk(begin, end, [&](const int64_t* offsets, int64_t rows, int64_t cols) {
      move_tile(static_cast<size_t>(size_), static_cast<char*>(to) + offsets[0] * size_,
                nest_.row_stride(0), nest_.col_stride(0),
                static_cast<const char*>(from) + offsets[1] * size_, nest_.row_stride(1),
                nest_.col_stride(1), rows, cols);
    });
  });
}

uint64_t StridedCopy::cost_ns() const {
  double ns = contiguous_ ? 0.1 * static_cast<double>(size_) / 2 : 0.7;
  return 20 + static_cast<uint64_t>(ns * static_cast<double>(nest_.numel));
}

namespace {

// A copy that changes the dtype: tiles are gathered where they are strided, converted, and
// scattered where the output is strided.
class Cast {
 public:
  Cast(const tn_tensor_desc& to, const tn_tensor_desc& from)
      : nest_(Nest({&to, &from})),
        convert_(convert_row(to.dtype, from.dtype)),
        to_size_(static_cast<int64_t>(sdk::dtype_size(to.dtype))),
        from_size_(static_cast<int64_t>(sdk::dtype_size(from.dtype))) {
    nest_.sort();
    nest_.put_rows_along(1);
    flat_ = nest_.rank == 0 ||
            (nest_.rank == 1 && nest_.col_stride(0) == 1 && nest_.col_stride(1) == 1);
    choose_tile(nest_, kConvertTile, tile_rows_, tile_cols_);
  }

  void run(void* to, const void* from) const {
    auto* y = static_cast<char*>(to);
    auto* x = static_cast<const char*>(from);
    if (flat_)
      return parallel_for(nest_.numel, kGrain, [&](int64_t begin, int64_t end, uint32_t) {
        convert_(end - begin, y + begin * to_size_, x + begin * from_size_);
      });
    Tiling tiling{nest_, tile_rows_, tile_cols_};
    int64_t count = tiling.count(), grain = std::max<int64_t>(1, kGrain * count / nest_.numel);
    parallel_for(count, grain, [&](int64_t begin, int64_t end, uint32_t) {
      run_tiles(tiling, y, x, begin, end);
    });
  }
  uint64_t cost_ns() const {
    return 20 + static_cast<uint64_t>((flat_ ? 0.5 : 1.5) * static_cast<double>(nest_.numel));
  }

 private:
  void run_tiles(const Tiling& tiling, char* y, const char* x, int64_t begin, int64_t end) const {
    alignas(64) char gathered[kConvertTile * 8], converted[kConvertTile * 8];
    tiling.walk(begin, end, [&](const int64_t* offsets, int64_t rows, int64_t cols) {
      move_tile(static_cast<size_t>(from_size_), gathered, cols, 1, x + offsets[1] * from_size_,
                nest_.row_stride(1), nest_.col_stride(1), rows, cols);
      convert_(rows * cols, converted, gathered);
      move_tile(static_cast<size_t>(to_size_), y + offsets[0] * to_size_, nest_.row_stride(0),
                nest_.col_stride(0), converted, cols, 1, rows, cols);
    });
  }

  Nest nest_;
  ConvertRow convert_;
  int64_t to_size_, from_size_, tile_rows_ = 1, tile_cols_ = 1;
  bool flat_;
};

tn_plan* make_copy(tn_device*, const Request& request) {
  auto &x = request.input(0), &y = request.output(0);
  if (sdk::numel(y) == 0) return empty_plan();
  auto plan = [](auto copy) {
    return sdk::make_plan([copy](const tn_run& run) { copy.run(run.outputs[0], run.inputs[0]); },
                          {0, copy.cost_ns()});
  };
  return x.dtype == y.dtype ? plan(StridedCopy(y, x)) : plan(Cast(y, x));
}
const sdk::Kernel copies({"copy"}, make_copy);

using sdk::dim_of, sdk::section, sdk::stride_of;

tn_plan* make_cat(tn_device*, const Request& request) {
  struct Part {
    StridedCopy copy;
    int64_t byte_offset;
  };
  auto& y = request.output(0);
  require_contiguous(request, y);
  if (sdk::numel(y) == 0) return empty_plan();
  size_t dim = dim_of(request, y);
  int64_t unit = stride_of(y, dim) * static_cast<int64_t>(sdk::dtype_size(y.dtype)), start = 0;
  uint64_t cost = 0;
  std::vector<Part> parts;
  for (size_t i = 0; i < request.num_inputs(); ++i) {
    auto& x = request.input(i);
    if (x.dtype != y.dtype || x.rank != y.rank)
      throw sdk::Error(TN_CODE_INVALID_ARGUMENT, "cat: inputs and output differ in dtype or rank");
    parts.push_back({StridedCopy(section(y, x, dim, 1), x), start * unit});
    cost += parts.back().copy.cost_ns();
    start += x.shape[dim];
  }
  if (start != y.shape[dim])
    throw sdk::Error(TN_CODE_INVALID_ARGUMENT, "cat: the inputs do not fill the output");
  auto run = [parts = std::move(parts)](const tn_run& run) {
    for (size_t i = 0; i < parts.size(); ++i)
      parts[i].copy.run(static_cast<char*>(run.outputs[0]) + parts[i].byte_offset, run.inputs[i]);
  };
  return sdk::make_plan(std::move(run), {0, cost});
}
const sdk::Kernel cats({"cat"}, make_cat);

tn_plan* make_slice_backward(tn_device*, const Request& request) {
  auto &g = request.input(0), &y = request.output(0);
  require_contiguous(request, y);
  if (sdk::numel(y) == 0) return empty_plan();
  size_t dim = dim_of(request, y);
  int64_t start = request.get_int("start"), step = request.get_int("step"), count = g.shape[dim];
  if (start < 0 || step < 1 || (count > 0 && start + (count - 1) * step >= y.shape[dim]) ||
      g.dtype != y.dtype)
    throw sdk::Error(TN_CODE_INVALID_ARGUMENT, "slice_backward: the slice does not fit its output");
  int64_t size = static_cast<int64_t>(sdk::dtype_size(y.dtype)), bytes = sdk::numel(y) * size;
  StridedCopy copy(section(y, g, dim, step), g);
  auto run = [copy, bytes, offset = start * stride_of(y, dim) * size](const tn_run& run) {
    zero_bytes(run.outputs[0], bytes);
    copy.run(static_cast<char*>(run.outputs[0]) + offset, run.inputs[0]);
  };
  return sdk::make_plan(run, {0, copy.cost_ns() + static_cast<uint64_t>(bytes / 20)});
}
const sdk::Kernel slice_backwards({"slice_backward"}, make_slice_backward);

}  // namespace
}  // namespace tenon::cpu
