// Division by numbers that a launch brings.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

namespace tenon::cuda {

// Division of numbers below 2^31 by a product and a shift (Granlund and Montgomery, "Division by
// invariant integers using multiplication", 1994).
struct Divider {
  uint32_t divisor, magic, shift;
  static Divider of(uint32_t divisor);
  __host__ __device__ uint32_t quotient(uint32_t n) const {
    return (static_cast<uint32_t>((static_cast<uint64_t>(n) * magic) >> 32) + n) >> shift;
  }
};

}  // namespace tenon::cuda
