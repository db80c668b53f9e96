#include "kernels/reduction/reduce.h"
#include "runtime/nest.h"

namespace tenon::cpu {

namespace {
constexpr int64_t kChunk = 64 * 1024;            // elements that one thread folds at a time
constexpr int64_t kAccBytes = 8 * 1024;          // of the accumulators side by side
constexpr int64_t kMostColumns = kAccBytes / 4;  // of elements that are widened to f32
constexpr int64_t kFewOutputs = 64;  // below this one output is worked on by several threads
constexpr int64_t kGather = 2048;
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

Reduction::Reduction(const ReduceShape& shape, const Reducer& reducer, double parameter, tn_dtype x,
                     tn_dtype y)
    : s_(shape),
      r_(reducer),
      parameter_(parameter),
      in_size_(static_cast<int64_t>(sdk::dtype_size(x))),
      out_size_(static_cast<int64_t>(sdk::dtype_size(y))),
      cols_(kAccBytes / reducer.acc_size) {
  if (has_16_bits(x)) widen_ = convert_row(TN_F32, x);
  if (has_16_bits(y)) round_ = convert_row(y, TN_F32);
  bool row_is_contiguous = s_.reduced_rank > 0 && s_.reduced[s_.reduced_rank - 1].x_stride == 1;
  bool kept_is_contiguous = s_.kept_rank > 0 && s_.kept[s_.kept_rank - 1].x_stride == 1;
  columns_ = !row_is_contiguous && kept_is_contiguous;
  columns_ ? plan_columns() : plan_rows();
}

uint64_t Reduction::workspace_bytes() const {
  return partials_ ? static_cast<uint64_t>(s_.outputs * chunks_ * r_.acc_size) : 0;
}

uint64_t Reduction::cost_ns() const {
  double outputs = static_cast<double>(s_.outputs),
         elements = outputs * static_cast<double>(s_.count);
  return 30 + static_cast<uint64_t>(0.25 * elements + (columns_ ? 1.0 : 10.0) * outputs);
}

void Reduction::run(const tn_run& run) const {
  auto* x = static_cast<const char*>(run.inputs[0]);
  auto* y = static_cast<char*>(run.outputs[0]);
  auto* partial = static_cast<char*>(run.workspace);
  columns_ ? run_columns(x, y, partial) : run_rows(x, y, partial);
  if (partials_) finish_partials(y, partial);
}

// partial[chunk][output], outputs in the order of the kept dimensions by stride.
void Reduction::finish_partials(char* y, char* partial) const {
  parallel_for(s_.outputs, std::max<int64_t>(1, kGrain / chunks_),
               [&](int64_t begin, int64_t end, uint32_t) {
                 for (int64_t c = 1; c < chunks_; ++c)
                   r_.combine(partial + begin * r_.acc_size,
                              partial + (c * s_.outputs + begin) * r_.acc_size, end - begin);
                 for (int64_t i = begin; i < end; ++i)
                   finish(y, s_.locate(i, s_.kept_rank).y, 1, partial + i * r_.acc_size, 1);
               });
}

void Reduction::finish(char* y, int64_t y_offset, int64_t step, const void* acc, int64_t n) const {
  y += y_offset * out_size_;
  if (!round_) return r_.finish(y, step, acc, n, s_.count, parameter_);
  alignas(64) char wide[kMostColumns * 4], rounded[kMostColumns * 2];
  r_.finish(wide, 1, acc, n, s_.count, parameter_);
  round_(n, rounded, wide);
  move_tile(2, y, 0, step, rounded, 0, 1, 1, n);
}

// Calls f(offset) for rows [begin, end) of the first `rank` reduced dimensions.
template <class F>
void Reduction::for_rows(int rank, int64_t begin, int64_t end, F&& f) const {
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
    for (int64_t i = 0; i < run; ++i) f(offset + i * step);
    begin += run;
  }
}

// ---- Rows: one output after the other

void Reduction::plan_rows() {
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

void Reduction::fold_row(void* acc, const char* x, int64_t n) const {
  if (step_ == 1 && !widen_) return r_.fold(acc, x, n);
  alignas(64) char gathered[kGather * 8], wide[kGather * 4];
  for (int64_t i = 0; i < n; i += kGather) {
    const int64_t m = std::min(kGather, n - i);
    const char* from = x + i * step_ * in_size_;
    if (step_ != 1) {
      move_tile(static_cast<size_t>(in_size_), gathered, m, 1, from, 0, step_, 1, m);
      from = gathered;
    }
    r_.fold(acc, widened(from, m, wide), m);
  }
}

void Reduction::fold_chunk(void* acc, const char* x, int64_t chunk) const {
  if (s_.count == 0) return;
  int64_t begin = chunk % pieces_ * kChunk, n = std::min(kChunk, row_ - begin),
          first = chunk / pieces_ * group_;
  x += begin * step_ * in_size_;
  if (rows_ == 1) return fold_row(acc, x, n);
  for_rows(s_.reduced_rank - 1, first, std::min(rows_, first + group_),
           [&](int64_t offset) { fold_row(acc, x + offset * in_size_, n); });
}

void Reduction::run_short_rows(const char* x, char* y) const {
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

void Reduction::run_rows(const char* x, char* y, char* partial) const {
  if (short_rows_) return run_short_rows(x, y);
  int64_t tasks = partials_ ? s_.outputs * chunks_ : s_.outputs,
          elements = partials_ ? s_.count / chunks_ : s_.count;
  parallel_for(tasks, std::max<int64_t>(1, kGrain / (elements + 16)),
               [&](int64_t begin, int64_t end, uint32_t) {
                 alignas(64) char acc[64], chunk_acc[64];
                 for (int64_t t = begin; t < end; ++t) {
                   auto place = s_.locate(t % s_.outputs, s_.kept_rank);
                   const char* from = x + place.x * in_size_;
                   if (partials_) {
                     char* to = partial + t * r_.acc_size;
                     r_.init(to, 1);
                     fold_chunk(to, from, t / s_.outputs);
                     continue;
                   }
                   r_.init(acc, 1);
                   fold_chunk(acc, from, 0);
                   for (int64_t c = 1; c < chunks_; ++c) {
                     r_.init(chunk_acc, 1);
                     fold_chunk(chunk_acc, from, c);
                     r_.combine(acc, chunk_acc, 1);
                   }
                   finish(y, place.y, 1, acc, 1);
                 }
               });
}

// ---- Columns: a block of outputs side by side

void Reduction::plan_columns() {
  rows_ = s_.count;
  row_ = s_.kept[s_.kept_rank - 1].size;
  across_ = (row_ + cols_ - 1) / cols_;
  group_ = std::max<int64_t>(16, kChunk / std::min(row_, cols_));
  chunks_ = std::max<int64_t>(1, (rows_ + group_ - 1) / group_);
  group_ = std::max<int64_t>(1, (rows_ + chunks_ - 1) / chunks_);  // of equal size
  partials_ = chunks_ > 1;
  // Short rows that lie one behind the other are added several at a time.
  bool dense = s_.reduced_rank == 1 && s_.reduced[0].x_stride == row_;
  together_ = dense ? std::max<int64_t>(1, std::min<int64_t>(256, cols_) / row_) : 1;
}

void Reduction::add_chunk(char* acc, const char* x, int64_t n, int64_t chunk) const {
  int64_t begin = chunk * group_, end = std::min(rows_, begin + group_);
  alignas(64) char wide[kMostColumns * 4];
  const auto add = [&](int64_t offset, int64_t count) {
    r_.add(acc, widened(x + offset * in_size_, count, wide), count);
  };
  r_.init(acc, n * together_);
  if (together_ == 1)
    return for_rows(s_.reduced_rank, begin, end, [&](int64_t offset) { add(offset, n); });
  for (int64_t row = begin; row < end; row += together_)
    add(row * n, n * std::min(together_, end - row));
  for (int64_t t = 1; t < together_; ++t) r_.combine(acc, acc + t * n * r_.acc_size, n);
}

void Reduction::run_columns(const char* x, char* y, char* partial) const {
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
                     int64_t step = s_.kept[s_.kept_rank - 1].y_stride;
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
  Reduction reduction(ReduceShape(x, sdk::reduced_dims(request)), reducer, parameter, x.dtype,
                      y.dtype);
  return sdk::make_plan([reduction](const tn_run& run) { reduction.run(run); },
                        {reduction.workspace_bytes(), reduction.cost_ns()});
}

}  // namespace tenon::cpu
