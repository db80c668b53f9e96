// The sum under the gradients of indexing: gx[o, key[i], :] += g[o, i, :] for all i, in the order
// of i, so that the bits are the same in every run. Where lines of `inner` are many a thread goes
// down each; else the keys are sorted, and equal ones are neighbours.
#pragma once

#include <cstdint>

#include "runtime/device.h"

namespace tenon::cuda {

inline constexpr int64_t kManyLines = 64 * 1024;  // that fill a device

class AddRows {
 public:
  // gx is (outer, size, inner), g (outer, count, inner), both contiguous. Refuses what 32-bit keys
  // cannot name.
  AddRows(const tn_device& device, int64_t outer, int64_t size, int64_t count, int64_t inner);

  uint64_t workspace_bytes() const { return scratch_at_ + scratch_bytes_; }
  // Where the caller puts, on the stream and before `run`, the row of gx for each i, or `none()`
  // where it goes nowhere.
  uint32_t* keys(void* workspace) const { return static_cast<uint32_t*>(workspace); }
  uint32_t none() const { return static_cast<uint32_t>(size_); }

  template <class T>
  void run(tn_stream* stream, const T* g, T* gx, void* workspace) const;

 private:
  int64_t outer_, size_, count_, inner_;
  bool sorts_;
  int bits_ = 1;
  uint64_t list_bytes_, scratch_at_,
      scratch_bytes_ = 0;  // of keys and positions; workspace after them
};

extern template void AddRows::run(tn_stream*, const float*, float*, void*) const;
extern template void AddRows::run(tn_stream*, const double*, double*, void*) const;

}  // namespace tenon::cuda
