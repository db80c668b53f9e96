// Moving elements of one size between any strides, prepared once.
#pragma once

#include "runtime/nest.h"

namespace tenon::cpu {

class StridedCopy {
 public:
  StridedCopy(const tn_tensor_desc& to, const tn_tensor_desc& from);
  void run(void* to, const void* from) const;
  uint64_t cost_ns() const;

 private:
  Nest nest_;  // operand 0 is the destination
  int64_t size_, tile_rows_ = 1, tile_cols_ = 1;
  bool contiguous_;
};

// Bytes of memory in parallel; below the grain on the calling thread.
void copy_bytes(void* to, const void* from, int64_t bytes);
void zero_bytes(void* to, int64_t bytes);

}  // namespace tenon::cpu
