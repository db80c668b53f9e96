#include <bit>

#include "kernels/reduction/reduce.h"
#include "runtime/nest.h"

namespace tenon::cpu {

namespace {
constexpr int64_t kChunk = 64 * 1024;  // elements that one thread folds at a time
// Of the accumulators side by side; a quarter of it where they are large, and so is their work.
constexpr int64_t kAccBytes = 32 * 1024;
constexpr int64_t kRowBytes = 2 * 1024;  // of those of rows
constexpr int64_t kMaxRounded = 2048;    // of results that are rounded to 16 bits at a time
constexpr int64_t kFewOutputs = 64;      // below this one output is worked on by several threads
constexpr int64_t kGather = 2048;
constexpr int64_t kMinRows = 128;  // of a chunk of columns: its sums are written, and read again
}  // namespace

ReduceShape::Place ReduceShape::locate(int64_t i, int rank) const {
  Place place{0, 0};
  for (int d = rank; d-- > 0;) {
    int64_t k = d == 0 ? i : i % kept[d].size;
    if (d > 0) i /= kept[d].size;
    place.x += k * kept[d].x_stride;
    place.y += k * kept[d].y_stride;
  }
  return place;
}

ReductionWalk::ReductionWalk(const ReduceShape& shape, const Reducer& reducer, double parameter,
                             tn_dtype x, tn_dtype y)
    : s_(shape),
      r_(reducer),
      parameter_(parameter),
      in_size_(static_cast<int64_t>(sdk::dtype_size(x))),
      out_size_(static_cast<int64_t>(sdk::dtype_size(y))),
      cols_((reducer.acc_size > 8 ? kAccBytes / 4 : kAccBytes) / reducer.acc_size) {
  if (has_16_bits(x)) widen_ = convert_row(TN_F32, x);
  if (has_16_bits(y)) round_ = convert_row(y, TN_F32);
  bool row_is_contiguous = s_.reduced_rank > 0 && s_.reduced[s_.reduced_rank - 1].x_stride == 1;
  bool kept_is_contiguous = s_.kept_rank > 0 && s_.kept[s_.kept_rank - 1].x_stride == 1;
  columns_ = !row_is_contiguous && kept_is_contiguous;
  columns_ ? plan_columns() : plan_rows();
}

uint64_t ReductionWalk::workspace_bytes() const {
  return partials_ ? static_cast<uint64_t>(s_.outputs * chunks_ * r_.acc_size) : 0;
}

uint64_t ReductionWalk::cost_ns() const {
  double outputs = static_cast<double>(s_.outputs),
         elements = outputs * static_cast<double>(s_.count);
  return 30 + static_cast<uint64_t>(0.25 * elements + (columns_ ? 1.0 : 10.0) * outputs);
}

void ReductionWalk::run(const tn_run& run) const {
  auto* x = static_cast<const char*>(run.inputs[0]);
  auto* y = static_cast<char*>(run.outputs[0]);
  auto* partial = static_cast<char*>(run.workspace);
  columns_ ? run_columns(x, y, partial) : run_rows(x, y, partial);
  if (partials_) finish_partials(y, partial);
}

// partial[chunk][output], outputs in the order of the kept dimensions by stride.
void ReductionWalk::finish_partials(char* y, char* partial) const {
  const int64_t most = kRowBytes / r_.acc_size;
  parallel_for(s_.outputs, std::max<int64_t>(1, kGrain / chunks_),
               [&](int64_t begin, int64_t end, uint32_t) {
                 for_outputs(begin, end, most, [&](int64_t i, int64_t n, const auto& place) {
                   char* acc = partial + i * r_.acc_size;
                   for (int64_t c = 1; c < chunks_; ++c)
                     r_.combine(acc, acc + c * s_.outputs * r_.acc_size, n);
                   finish(y, place.y, innermost().y_stride, acc, n);
                 });
               });
}

void ReductionWalk::finish(char* y, int64_t y_offset, int64_t step, const void* acc,
                           int64_t n) const {
  y += y_offset * out_size_;
  if (!round_) return r_.finish(y, step, acc, n, s_.count, parameter_);
  alignas(64) char wide[kMaxRounded * 4], rounded[kMaxRounded * 2];
  for (int64_t i = 0; i < n; i += kMaxRounded) {
    const int64_t m = std::min(kMaxRounded, n - i);
    r_.finish(wide, 1, static_cast<const char*>(acc) + i * r_.acc_size, m, s_.count, parameter_);
    round_(m, rounded, wide);
    move_tile(2, y + i * step * out_size_, 0, step, rounded, 0, 1, 1, m);
  }
}

// Calls f(i, n, place) for outputs [begin, end), up to `most` of the innermost kept dimension at a
// time: they lie at `place` and in steps of that dimension's strides.
template <class F>
void ReductionWalk::for_outputs(int64_t begin, int64_t end, int64_t most, F&& f) const {
  const int64_t inner = innermost().size;
  for (int64_t i = begin, n; i < end; i += n) {
    n = std::min({most, end - i, inner == end ? end - i : inner - i % inner});
    f(i, n, s_.locate(i, s_.kept_rank));
  }
}

// Calls f(offset, stride, n) for rows [begin, end) of the first `rank` reduced dimensions, n of
// which lie in one of them.
template <class F>
void ReductionWalk::for_rows(int rank, int64_t begin, int64_t end, F&& f) const {
  while (begin < end) {
    int64_t offset = 0, rest = begin, run = 1, step = 0;
    for (int d = rank; d-- > 0;) {
      int64_t k = rest % s_.reduced[d].size;
      rest /= s_.reduced[d].size;
      offset += k * s_.reduced[d].x_stride;
      if (d == rank - 1) {
        run = s_.reduced[d].size - k;
        step = s_.reduced[d].x_stride;
      }
    }
    run = std::min(run, end - begin);
    f(offset, step, run);
    begin += run;
  }
}

// ---- Rows: one output after the other

void ReductionWalk::plan_rows() {
  int last = s_.reduced_rank - 1;
  row_ = last < 0 ? 1 : s_.reduced[last].size;
  step_ = last < 0 ? 1 : s_.reduced[last].x_stride;
  rows_ = row_ == 0 ? 0 : s_.count / row_;
  pieces_ = std::max<int64_t>(1, (row_ + kChunk - 1) / kChunk);
  group_ = std::max<int64_t>(1, kChunk / std::max<int64_t>(row_, 1));
  chunks_ = std::max<int64_t>(1, (rows_ + group_ - 1) / group_ * pieces_);
  partials_ = chunks_ > 1 && s_.outputs < kFewOutputs;
  const bool dense = s_.kept_rank == 0 || (s_.kept_rank == 1 && s_.kept[0].x_stride == row_);
  short_rows_ = !widen_ && s_.reduced_rank == 1 && dense && step_ == 1 && row_ < kShortRow;
}

// Rows of x[r * stride, r * stride + n * step_) into acc[r].
void ReductionWalk::fold_rows(char* acc, const char* x, int64_t stride, int64_t rows,
                              int64_t n) const {
  const bool as_it_is = !widen_ || r_.fold_halves;
  const auto fold = widen_ && r_.fold_halves ? r_.fold_halves : r_.fold;
  if (step_ == 1 && as_it_is) return fold(acc, x, stride, rows, n);
  alignas(64) char gathered[kGather * 8], wide[kGather * 4];
  for (int64_t r = 0; r < rows; ++r, acc += r_.acc_size, x += stride * in_size_)
    for (int64_t i = 0; i < n; i += kGather) {
      const int64_t m = std::min(kGather, n - i);
      const char* from = x + i * step_ * in_size_;
      if (step_ != 1) {
        move_tile(static_cast<size_t>(in_size_), gathered, m, 1, from, 0, step_, 1, m);
        from = gathered;
      }
      fold(acc, as_it_is ? from : widened(from, m, wide), m, 1, m);
    }
}

void ReductionWalk::fold_chunk(char* acc, const char* x, int64_t chunk) const {
  if (s_.count == 0) return;
  int64_t begin = chunk % pieces_ * kChunk, n = std::min(kChunk, row_ - begin),
          first = chunk / pieces_ * group_;
  x += begin * step_ * in_size_;
  if (rows_ == 1) return fold_rows(acc, x, n, 1, n);
  for_rows(s_.reduced_rank - 1, first, std::min(rows_, first + group_),
           [&](int64_t offset, int64_t stride, int64_t rows) {
             for (int64_t i = 0; i < rows; ++i)
               fold_rows(acc, x + (offset + i * stride) * in_size_, n, 1, n);
           });
}

// All chunks of one output.
void ReductionWalk::fold_output(char* acc, const char* x) const {
  alignas(64) char chunk_acc[64];
  fold_chunk(acc, x, 0);
  for (int64_t c = 1; c < chunks_; ++c) {
    r_.init(chunk_acc, 1);
    fold_chunk(chunk_acc, x, c);
    r_.combine(acc, chunk_acc, 1);
  }
}

void ReductionWalk::run_short_rows(const char* x, char* y) const {
  parallel_for(s_.outputs, kGrain / (row_ + 1), [&](int64_t begin, int64_t end, uint32_t) {
    alignas(64) char acc[kAccBytes];
    for (int64_t i = begin; i < end; i += cols_) {
      int64_t n = std::min(cols_, end - i);
      r_.init(acc, n);
      r_.fold_short(acc, x + i * row_ * in_size_, n, row_);
      finish(y, i * s_.kept[0].y_stride, s_.kept[0].y_stride, acc, n);
    }
  });
}

void ReductionWalk::run_rows(const char* x, char* y, char* partial) const {
  if (short_rows_) return run_short_rows(x, y);
  if (partials_)
    return parallel_for(s_.outputs * chunks_, std::max<int64_t>(1, kGrain / (s_.count / chunks_)),
                        [&](int64_t begin, int64_t end, uint32_t) {
                          for (int64_t t = begin; t < end; ++t) {
                            char* to = partial + t * r_.acc_size;
                            const auto place = s_.locate(t % s_.outputs, s_.kept_rank);
                            r_.init(to, 1);
                            fold_chunk(to, x + place.x * in_size_, t / s_.outputs);
                          }
                        });
  // Several outputs at a time, if each is one row of one chunk.
  const int64_t most = rows_ == 1 && chunks_ == 1 ? kRowBytes / r_.acc_size : 1;
  parallel_for(s_.outputs, std::max<int64_t>(1, kGrain / (s_.count + 16)),
               [&](int64_t begin, int64_t end, uint32_t) {
                 alignas(64) char acc[kRowBytes];
                 for_outputs(begin, end, most, [&](int64_t, int64_t n, const auto& place) {
                   const char* from = x + place.x * in_size_;
                   r_.init(acc, n);
                   most == 1 ? fold_output(acc, from)
                             : fold_rows(acc, from, innermost().x_stride, n, row_);
                   finish(y, place.y, innermost().y_stride, acc, n);
                 });
               });
}

// ---- Columns: a block of outputs side by side

void ReductionWalk::plan_columns() {
  rows_ = s_.count;
  row_ = s_.kept[s_.kept_rank - 1].size;
  across_ = (row_ + cols_ - 1) / cols_;
  group_ = std::max<int64_t>(kMinRows, kChunk / std::min(row_, cols_));
  chunks_ = std::max<int64_t>(1, (rows_ + group_ - 1) / group_);
  // Of equal size, and in numbers that most numbers of threads divide.
  if (chunks_ < 64) chunks_ = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(chunks_)));
  group_ = std::max<int64_t>(1, (rows_ + chunks_ - 1) / chunks_);
  partials_ = chunks_ > 1;
  // Short rows that lie one behind the other are added several at a time.
  bool dense = s_.reduced_rank == 1 && s_.reduced[0].x_stride == row_;
  together_ = dense ? std::max<int64_t>(1, std::min<int64_t>(256, cols_) / row_) : 1;
}

// x[r * stride + k] into acc[k], for all of the rows.
void ReductionWalk::add_rows(char* acc, const char* x, int64_t stride, int64_t rows,
                             int64_t n) const {
  if (!widen_) return r_.add(acc, x, stride, rows, n);
  constexpr int64_t tile = 512, few = 4;
  alignas(64) float wide[few * tile];
  for (int64_t r = 0; r < rows; r += few)
    for (int64_t k = 0; k < n; k += tile) {
      const int64_t cols = std::min(tile, n - k), some = std::min(few, rows - r);
      for (int64_t i = 0; i < some; ++i)
        widen_(cols, wide + i * tile, x + ((r + i) * stride + k) * in_size_);
      r_.add(acc + k * r_.acc_size, wide, tile, some, cols);
    }
}

void ReductionWalk::add_chunk(char* acc, const char* x, int64_t n, int64_t chunk) const {
  const int64_t begin = chunk * group_, end = std::min(rows_, begin + group_);
  r_.init(acc, n * together_);
  if (together_ == 1)
    return for_rows(s_.reduced_rank, begin, end, [&](int64_t offset, int64_t stride, int64_t rows) {
      add_rows(acc, x + offset * in_size_, stride, rows, n);
    });
  const int64_t wide = n * together_, whole = std::max<int64_t>(0, end - begin) / together_;
  x += begin * n * in_size_;
  add_rows(acc, x, wide, whole, wide);
  const int64_t rest = (end - begin - whole * together_) * n;
  if (rest > 0) add_rows(acc, x + whole * wide * in_size_, rest, 1, rest);
  for (int64_t t = 1; t < together_; ++t) r_.combine(acc, acc + t * n * r_.acc_size, n);
}

void ReductionWalk::run_columns(const char* x, char* y, char* partial) const {
  int64_t blocks = s_.outputs / row_ * across_,
          elements = std::min(row_, cols_) * std::min(rows_, group_);
  parallel_for(blocks * chunks_, std::max<int64_t>(1, kGrain / (elements + 16)),
               [&](int64_t begin, int64_t end, uint32_t) {
                 alignas(64) char acc[kAccBytes];
                 for (int64_t t = begin; t < end; ++t) {
                   int64_t block = t % blocks, chunk = t / blocks, outer = block / across_,
                           col = block % across_ * cols_;
                   int64_t n = std::min(cols_, row_ - col);
                   auto place = s_.locate(outer, s_.kept_rank - 1);
                   add_chunk(acc, x + (place.x + col) * in_size_, n, chunk);
                   if (partials_) {
                     std::copy_n(acc, n * r_.acc_size,
                                 partial + (chunk * s_.outputs + outer * row_ + col) * r_.acc_size);
                   } else {
                     const int64_t step = innermost().y_stride;
                     finish(y, place.y + col * step, step, acc, n);
                   }
                 }
               });
}

tn_plan* reduction_plan(const Request& request, const Reducer& reducer, double parameter) {
  auto& y = request.output(0);
  require_contiguous(y);
  const auto& x = request.input(0);
  if (static_cast<int64_t>(sdk::dtype_size(computed_as(y.dtype))) != reducer.out_size)
    refuse_dtype(y.dtype);
  if (sdk::numel(y) == 0) return empty_plan();
  ReductionWalk reduction(ReduceShape(x, sdk::reduced_dims(request)), reducer, parameter, x.dtype,
                          y.dtype);
  return sdk::make_plan([reduction](const tn_run& run) { reduction.run(run); },
                        {reduction.workspace_bytes(), reduction.cost_ns()});
}

}  // namespace tenon::cpu
