// Moving elements between any strides, prepared once.
#pragma once

#include "runtime/nest.h"
#include "simd/convert.h"

namespace tenon::cpu {

// Converts from one dtype to the other where they differ.
class StridedCopy {
 public:
  StridedCopy(const tn_tensor_desc& to, const tn_tensor_desc& from);
  void run(void* to, const void* from) const;
  uint64_t cost_ns() const;

 private:
  void run_tiles(const Tiling& tiling, char* to, const char* from, int64_t begin,
                 int64_t end) const;

  Nest nest_;  // operand 0 is the destination
  ConvertRow convert_ = nullptr;
  int64_t to_size_, from_size_, tile_rows_ = 1, tile_cols_ = 1;
  bool contiguous_;
};

// Bytes of memory in parallel; below the grain on the calling thread.
void copy_bytes(void* to, const void* from, int64_t bytes);
void zero_bytes(void* to, int64_t bytes);

}  // namespace tenon::cpu
