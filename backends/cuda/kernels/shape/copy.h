// Moving elements of one size between any strides, prepared once.
#pragma once

#include "kernels/pointwise/pointwise.h"

namespace tenon::cuda {

// Dimensions that a transposing copy walks in square tiles: rows run along the source's memory,
// columns along the destination's.
struct TransposePiece {
  Layout<2> outer;  // the other dimensions
  int64_t base[2];
  uint32_t rows, cols;
  uint32_t to_row, from_col;  // strides
};

class StridedCopy {
 public:
  StridedCopy(const tn_tensor_desc& to, const tn_tensor_desc& from);
  void run(tn_stream* stream, void* to, const void* from) const;

 private:
  tn_dtype dtype_;
  Loop<2> loop_;
  std::vector<TransposePiece> transposed_;  // used where not empty
};

// Writes one element's bits everywhere, prepared once.
class StridedFill {
 public:
  explicit StridedFill(const tn_tensor_desc& to);
  void run(tn_stream* stream, void* to, uint64_t bits) const;

 private:
  tn_dtype dtype_;
  Loop<1> loop_;
};

// A copy that changes the dtype (cast.cu).
tn_plan* make_cast_plan(const Request& request);

}  // namespace tenon::cuda
