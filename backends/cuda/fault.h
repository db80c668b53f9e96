// Errors that only a kernel can see: an index or a label outside of what it indexes. A kernel files the first one in its stream's
// record, which lies in pinned memory; the host looks at it when it next reaches an event of that stream.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

namespace tenon::cuda {

enum class FaultSite : int32_t { none, cross_entropy, embedding, index_select, gather };

struct Fault {
  int32_t claimed;   // 1 once a thread has taken the record
  FaultSite site;    // written last: not `none` means that the rest is there
  int64_t position;  // of the bad value in its tensor, in row-major order
  int64_t value;
  int64_t bound;  // values must be in [0, bound)
};

#if defined(__CUDACC__) || defined(TENON_CUDA_EMULATED)
// For kernels. One thread wins; the others' faults are of the same launch or later ones.
__device__ inline void file_fault(Fault* fault, FaultSite site, int64_t position, int64_t value, int64_t bound) {
  if (atomicCAS(&fault->claimed, 0, 1) != 0) return;
  fault->position = position;
  fault->value = value;
  fault->bound = bound;
  __threadfence_system();
  *const_cast<volatile FaultSite*>(&fault->site) = site;
}
#endif

// Throws what was filed, with the operator's name as the detail "op", and clears the record for the next one; returns where nothing
// was.
void throw_fault(Fault& fault);

}  // namespace tenon::cuda
