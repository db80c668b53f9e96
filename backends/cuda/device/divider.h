// Fast division by numbers that are fixed for a launch, and division of 64-bit numbers.
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

// a / b of numbers that are not negative. A 64-bit division is about a hundred instructions: it is
// done only where 32 bits do not suffice, and is not inlined into kernels.
__device__ __attribute__((noinline)) inline int64_t divide_wide(int64_t a, int64_t b) {
  return a / b;
}
__device__ inline int64_t divide(int64_t a, int64_t b) {
  if (((static_cast<uint64_t>(a) | static_cast<uint64_t>(b)) >> 32) == 0)
    return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
  return divide_wide(a, b);
}

}  // namespace tenon::cuda
