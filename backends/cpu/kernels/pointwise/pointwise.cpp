#include "kernels/pointwise/pointwise.h"

#include <cstring>

namespace tenon::cpu {
namespace {
// Elements of a tile that has packed operands: three buffers of f64 fit the first-level cache.
constexpr int64_t kPackedTile = 1024;
constexpr int64_t kPackedCols = 64;
// Rows shorter than this cost more to call a kernel for than to copy.
constexpr int64_t kShortRow = 48;
constexpr int64_t kPlainTile = 8192;
}  // namespace

Pointwise::Pointwise(const Request& request, std::initializer_list<const tn_tensor_desc*> inputs,
                     uint32_t may_be_single, double ns, bool as_bits)
    : inputs_(static_cast<int>(inputs.size())) {
  const tn_tensor_desc& out = request.output(0);
  require_contiguous(out);
  const tn_tensor_desc* all[kMaxOperands] = {&out};
  int count = 1;
  for (auto* d : inputs) all[count++] = d;
  for (int k = 0; k < count; ++k) {
    if (!all[k]) continue;
    auto dtype = all[k]->dtype, seen = as_bits ? dtype : computed_as(dtype);
    operands_[k] = {static_cast<uint32_t>(sdk::dtype_size(dtype)),
                    static_cast<uint32_t>(sdk::dtype_size(seen)), seen != dtype, nullptr};
    if (seen != dtype)
      operands_[k].convert = k == 0 ? convert_row(dtype, seen) : convert_row(seen, dtype);
  }
  nest_ = Nest(std::span(all, static_cast<size_t>(count)));
  plan_tiles(may_be_single);
  double an_element = ns + an_element_moved();
  grain_ = std::max<int64_t>(256, static_cast<int64_t>(10000.0 / an_element));
  cost_ns_ = 20 + static_cast<uint64_t>(an_element * static_cast<double>(nest_.numel));
}

double Pointwise::an_element_moved() const {
  if (flat_) return 0;
  if (operands_[0].packed) return 1;
  for (int k = 1; k <= inputs_; ++k)
    if (operands_[k].packed) return 0.3;
  return 15.0 / static_cast<double>(std::max<int64_t>(1, nest_.cols()));  // a call for each row
}

void Pointwise::plan_tiles(uint32_t may_be_single) {
  bool any_packed = operands_[0].packed;
  bool alone = nest_.numel == 1;  // then one value is a contiguous row
  for (int pass = 0; pass < 2; ++pass) {
    int64_t rows = nest_.rows(), cols = nest_.cols();
    bool all_single = inputs_ > 0;
    single_ = 0;
    for (int k = 1; k <= inputs_; ++k) {
      auto& o = operands_[k];
      int64_t rs = nest_.row_stride(k), cs = nest_.col_stride(k);
      if (o.size == 0) {  // a single value; the kernel has to take it as one
        single_ |= alone ? 0u : 1u << (k - 1);
        continue;
      }
      bool can_be_single = (may_be_single >> (k - 1) & 1) && cs == 0 && !alone;
      bool short_rows =
          rows > 1 && cols < kShortRow && !(can_be_single ? rs == 0 : rs == cols && cs == 1);
      o.packed = o.convert || short_rows || !(can_be_single || cs == 1 || alone);
      if (!o.packed && can_be_single) single_ |= 1u << (k - 1);
      any_packed = any_packed || o.packed;
      all_single = all_single && (single_ >> (k - 1) & 1);
    }
    if (all_single) {  // kernels want one operand to be a row
      int k = operands_[1].size != 0 ? 1 : 2;
      operands_[k].packed = any_packed = true;
      single_ &= ~(1u << (k - 1));
    }
    if (pass == 1) break;
    for (int k = 1; k <= inputs_; ++k)
      if (operands_[k].packed) nest_.put_rows_along(k);
  }
  flat_ = nest_.rank <= 1 && !any_packed;
  int64_t rows = nest_.rows(), cols = nest_.cols();
  tile_cols_ = any_packed
                   ? std::min(cols, rows > 1 && cols >= kShortRow ? kPackedCols : kPackedTile)
                   : std::min(cols, kPlainTile);
  tile_cols_ = std::max<int64_t>(tile_cols_, 1);
  tile_rows_ = std::clamp<int64_t>((any_packed ? kPackedTile : kPlainTile) / tile_cols_, 1,
                                   std::max<int64_t>(rows, 1));
  merged_ = tile_cols_ == cols && (rows == 1 || operands_[0].packed || nest_.row_stride(0) == cols);
  for (int k = 1; k <= inputs_; ++k) {
    bool single = single_ >> (k - 1) & 1;
    merged_ =
        merged_ && (rows == 1 || operands_[k].packed || nest_.row_stride(k) == (single ? 0 : cols));
  }
}

void Pointwise::run_large(RowKernel kernel, void* out, const void* const* in) const {
  if (nest_.numel == 0) return;
  if (!flat_) {
    Tiling tiling{nest_, tile_rows_, tile_cols_};
    int64_t count = tiling.count();
    return parallel_for(
        count, std::max<int64_t>(1, grain_ * count / nest_.numel),
        [&](int64_t begin, int64_t end, uint32_t) { run_tiles(kernel, out, in, begin, end); });
  }
  parallel_for(nest_.numel, grain_, [&](int64_t begin, int64_t end, uint32_t) {
    Row row{end - begin, static_cast<char*>(out) + begin * operands_[0].row_size, {}, single_};
    for (int k = 0; k < inputs_; ++k)
      row.in[k] = static_cast<const char*>(in[k]) +
                  (single_ >> k & 1 ? 0 : begin * operands_[k + 1].row_size);
    kernel(row);
  });
}

void Pointwise::run_tiles(RowKernel kernel, void* out, const void* const* in, int64_t begin,
                          int64_t end) const {
  alignas(64) char packed[kMaxOperands][kPackedTile * 8];
  alignas(64) char halves[kPackedTile * 2];
  // What a buffer holds: an operand that repeats along the outer dimensions is packed once.
  int64_t held[kMaxOperands] = {-1, -1, -1, -1}, held_rows = -1, held_cols = -1;
  Tiling{nest_, tile_rows_, tile_cols_}.walk(
      begin, end, [&](const int64_t* offsets, int64_t rows, int64_t cols) {
        bool same_size = rows == held_rows && cols == held_cols;
        held_rows = rows;
        held_cols = cols;
        const char* from[3] = {};
        int64_t step[3] = {};  // bytes from row to row
        for (int k = 0; k < inputs_; ++k) {
          auto& o = operands_[k + 1];
          from[k] = static_cast<const char*>(in[k]);
          if (o.size == 0) continue;
          from[k] += offsets[k + 1] * o.size;
          step[k] = nest_.row_stride(k + 1) * o.size;
          if (!o.packed) continue;
          bool held_already = same_size && held[k] == offsets[k + 1];
          held[k] = offsets[k + 1];
          const bool one_line =
              nest_.col_stride(k + 1) == 1 && (rows == 1 || nest_.row_stride(k + 1) == cols);
          if (!held_already && o.convert && one_line) {
            o.convert(rows * cols, packed[k], from[k]);
          } else if (!held_already) {
            move_tile(o.size, o.convert ? halves : packed[k], cols, 1, from[k],
                      nest_.row_stride(k + 1), nest_.col_stride(k + 1), rows, cols);
            if (o.convert) o.convert(rows * cols, packed[k], halves);
          }
          from[k] = packed[k];
          step[k] = cols * o.row_size;
        }
        bool convert_out = operands_[0].packed;
        char* final_out = static_cast<char*>(out) + offsets[0] * operands_[0].size;
        int64_t out_step = nest_.row_stride(0) * operands_[0].size;
        char* to = convert_out ? packed[3] : final_out;
        int64_t to_step = convert_out ? cols * operands_[0].row_size : out_step;
        int64_t calls = merged_ ? 1 : rows, n = merged_ ? rows * cols : cols;
        for (int64_t r = 0; r < calls; ++r)
          kernel({n,
                  to + r * to_step,
                  {from[0] + r * step[0], from[1] + r * step[1], from[2] + r * step[2]},
                  single_});
        if (convert_out && merged_ && out_step == cols * operands_[0].size)
          return operands_[0].convert(n, final_out, packed[3]);
        for (int64_t r = 0; convert_out && r < rows; ++r)
          operands_[0].convert(cols, final_out + r * out_step,
                               packed[3] + r * cols * operands_[0].row_size);
      });
}

}  // namespace tenon::cpu
