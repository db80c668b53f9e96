// What the indexing kernels share: the check of an index, and a tensor in two parts.
#pragma once

#include "kernels/pointwise/pointwise.h"

namespace tenon::cpu {

[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_index(int64_t index, int64_t size,
                                                                int64_t position) {
  throw sdk::Error(TN_CODE_OUT_OF_RANGE,
                   sdk::text("index {} at position {} is outside [0, {})", index, position, size),
                   {{"position", std::to_string(position)},
                    {"index", std::to_string(index)},
                    {"size", std::to_string(size)}});
}

inline int64_t checked(int64_t index, int64_t size, int64_t position) {
  if (index < 0 || index >= size) refuse_index(index, size, position);
  return index;
}

// Dimensions [begin, end) of a descriptor.
inline tn_tensor_desc dims_between(const tn_tensor_desc& d, size_t begin, size_t end) {
  tn_tensor_desc p = d;
  p.rank = static_cast<uint32_t>(end - begin);
  std::copy(d.shape + begin, d.shape + end, p.shape);
  std::copy(d.strides + begin, d.strides + end, p.strides);
  return p;
}

}  // namespace tenon::cpu
