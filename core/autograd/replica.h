// Parameters and buffers that may be read on several devices.
#pragma once

#include <mutex>
#include <vector>

#include <tenon/core/tensor.h>

namespace tenon {

// Lets operators that mix `parameter_or_buffer` with inputs on another device read a replica there. It is made when first needed
// and refreshed when the primary's values have changed. Gradients that arrive for a replica are added to the primary's, in the
// order of device names, when the backward pass ends. What changes a replica in place (running statistics) is lost when it is next
// read: only the primary's values last.
TENON_API void allow_replicas(const Tensor& parameter_or_buffer);
TENON_API bool has_replicas(const Tensor& parameter_or_buffer);

class ReplicaSet {
 public:
  // The values of `primary` on `device`; detached.
  Tensor on(const Tensor& primary, Device device);

 private:
  struct Replica {
    Device device;
    Tensor values;
    uint64_t version;      // of the primary, when the values were copied
    uint64_t own_version;  // of the values, right after
  };
  std::mutex mutex_;
  std::vector<Replica> replicas_;
};

// `tensor` itself or, where it may have replicas and lives elsewhere, the one on `device`.
Tensor resolve_replica(const Tensor& tensor, Device device);

}  // namespace tenon
