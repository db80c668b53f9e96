// The walk under every reduction. A reducer says what a value is and how two are combined; here is
// decided whether rows are folded (the reduced dimension is contiguous) or added up side by side (a
// kept one is), and what is done in parallel. Chunks are cut by size alone, and combined in order,
// so results do not depend on the number of threads.
#pragma once

#include <tenon/plugins/sdk/requests/reduction.h>

#include "runtime/common.h"
#include "simd/convert.h"

namespace tenon::cpu {

// Below this rows are folded side by side; one row alone too, so that it has the bits that it has
// among others.
inline constexpr int64_t kShortRow = 32;

struct ReduceShape : sdk::ReduceShape {
  ReduceShape(const tn_tensor_desc& x, const std::vector<int64_t>& dims)
      : sdk::ReduceShape(of(x, dims)) {}

  struct Place {
    int64_t x, y;
  };
  // Where output i of the first `rank` kept dimensions lies.
  Place locate(int64_t i, int rank) const;
};

// Functions over accumulators, `acc_size` bytes each. One table for each operator and dtype; that
// of f32 serves f16 and bf16, which are converted a row at a time.
struct Reducer {
  int64_t in_size, acc_size, out_size;
  void (*init)(void* acc, int64_t n);
  // All of x[r * stride, r * stride + n) into acc[r], for each of the rows.
  void (*fold)(void* acc, const void* x, int64_t stride, int64_t rows, int64_t n);
  // The same for rows of a few elements that lie one behind the other.
  void (*fold_short)(void* acc, const void* x, int64_t rows, int64_t n);
  // x[r * stride + k] into acc[k], for all of the rows.
  void (*add)(void* acc, const void* x, int64_t stride, int64_t rows, int64_t n);
  void (*combine)(void* acc, const void* other, int64_t n);  // other[k] into acc[k]
  // y[k * step] from acc[k]; `count` elements went into each.
  void (*finish)(void* y, int64_t step, const void* acc, int64_t n, int64_t count,
                 double parameter);
  // As `fold`, from elements of 16 bits that were not converted; may be null.
  void (*fold_halves)(void* acc, const void* x, int64_t stride, int64_t rows, int64_t n) = nullptr;
};

class ReductionWalk {
 public:
  // For tensors of these dtypes.
  ReductionWalk(const ReduceShape& shape, const Reducer& reducer, double parameter, tn_dtype x,
                tn_dtype y);
  uint64_t workspace_bytes() const;
  uint64_t cost_ns() const;
  void run(const tn_run& run) const;

 private:
  void plan_rows();
  void plan_columns();
  void fold_rows(char* acc, const char* x, int64_t stride, int64_t rows, int64_t n) const;
  void fold_chunk(char* acc, const char* x, int64_t chunk) const;
  void fold_output(char* acc, const char* x) const;
  void run_short_rows(const char* x, char* y) const;
  void run_rows(const char* x, char* y, char* partial) const;
  void add_rows(char* acc, const char* x, int64_t stride, int64_t rows, int64_t n) const;
  void add_chunk(char* acc, const char* x, int64_t n, int64_t chunk) const;
  void run_columns(const char* x, char* y, char* partial) const;
  void finish_partials(char* y, char* partial) const;
  // The kept dimension whose outputs lie closest together; of one output if none is kept.
  ReduceShape::Dim innermost() const {
    return s_.kept_rank > 0 ? s_.kept[s_.kept_rank - 1] : ReduceShape::Dim{1, 0, 1};
  }
  template <class F>
  void for_outputs(int64_t begin, int64_t end, int64_t most, F&& f) const;
  template <class F>
  void for_rows(int rank, int64_t begin, int64_t end, F&& f) const;
  // Elements of x as the reducer takes them: x itself, or in `wide`.
  const void* widened(const char* x, int64_t n, void* wide) const {
    if (!widen_) return x;
    widen_(n, wide, x);
    return wide;
  }
  void finish(char* y, int64_t y_offset, int64_t step, const void* acc, int64_t n) const;

  ReduceShape s_;
  Reducer r_;
  double parameter_;
  int64_t in_size_, out_size_;                    // bytes of an element of x and of y
  ConvertRow widen_ = nullptr, round_ = nullptr;  // x to f32, and f32 to y, where they have 16 bits
  bool columns_, partials_ = false, short_rows_ = false;
  int64_t cols_;  // outputs in a block of columns
  // A chunk is group_ rows of row_ elements, or one of pieces_ parts of a long row.
  int64_t row_ = 1, rows_ = 1, step_ = 1, pieces_ = 1, group_ = 1, chunks_ = 1, across_ = 1,
          together_ = 1;
};

// The plan of a reduction of input 0 to output 0 over the attribute "dims".
tn_plan* reduction_plan(const Request& request, const Reducer& reducer, double parameter = 0);

}  // namespace tenon::cpu
