// Errors that only a kernel can see: an index or a label outside of what it indexes. A kernel files
// the first one in a record in pinned memory: its stream's, or, where it was captured, its graph's,
// for a graph may run on any stream and outlive the one it was captured on. The host looks at the
// records of a stream and of the graphs launched on it when it reaches an event of that stream.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

namespace tenon::cuda {

enum class FaultSite : int32_t {
  none,
  cross_entropy,
  ctc_loss,
  embedding,
  index_select,
  gather,
  scatter,
  scatter_reduce
};

struct Fault {
  int32_t claimed;   // 1 once a thread has taken the record
  FaultSite site;    // written last: not `none` means that the rest is there
  int64_t position;  // of the bad value in its tensor, in row-major order
  int64_t value;
  int64_t bound;  // values must be in [0, bound)
};

#if defined(__CUDACC__) || defined(TENON_CUDA_EMULATED)
// For kernels. One thread wins; the others' faults are of the same launch or later ones.
__device__ inline void file_fault(Fault* fault, FaultSite site, int64_t position, int64_t value,
                                  int64_t bound) {
  if (atomicCAS(&fault->claimed, 0, 1) != 0) return;
  fault->position = position;
  fault->value = value;
  fault->bound = bound;
  __threadfence_system();
  *const_cast<volatile FaultSite*>(&fault->site) = site;
}
#endif

// A record, empty at first. It may be made and go with any device current.
class PinnedFault {
 public:
  PinnedFault();
  ~PinnedFault();
  PinnedFault(const PinnedFault&) = delete;
  Fault* get() const { return fault_; }

 private:
  Fault* fault_ = nullptr;
};

// What the work on one stream may file. Any thread.
class FaultList {
 public:
  explicit FaultList(std::shared_ptr<PinnedFault> own) : own_(std::move(own)) {}
  Fault* own() const { return own_->get(); }
  // A graph runs on the stream from now on; it holds its record for as long as it lives.
  void add_graph(const std::shared_ptr<PinnedFault>& fault);
  // Throws the first that was filed; clears it.
  void throw_filed();

 private:
  std::shared_ptr<PinnedFault> own_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<PinnedFault>> graphs_;
};

// Throws what was filed, with the operator's name as the detail "op", and clears the record for the
// next one; returns where nothing was.
void throw_fault(Fault& fault);

}  // namespace tenon::cuda
