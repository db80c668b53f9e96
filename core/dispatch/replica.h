// Parameters and buffers that may be read on several devices.
#pragma once

#include <span>
#include <vector>

#include <tenon/core/base/fork.h>
#include <tenon/core/tensor.h>

namespace tenon {

// Lets operators that mix `parameter_or_buffer` with inputs on another device read a replica there.
// It is made when first needed and refreshed when the primary's values have changed. Gradients that
// arrive for a replica are added to the primary's, in the order of device names, when the backward
// pass ends. What changes a replica in place (running statistics) is lost when it is next read:
// only the primary's values last.
TENON_API void allow_replicas(const Tensor& parameter_or_buffer);
TENON_API bool has_replicas(const Tensor& parameter_or_buffer);
// Brings all replicas of `tensors` on `devices` up to date at once where a plugin joins the
// devices; `devices` begin with the one that the tensors are on. Others, and those on devices of
// another kind, are refreshed when they are next read, as ever.
TENON_API void refresh_replicas(std::span<const Tensor> tensors, std::span<const Device> devices);

class ReplicaSet {
 public:
  // The values of `primary` on `device`; detached.
  Tensor on(const Tensor& primary, Device device);
  // The replicas on `devices`, made where there is none; nothing where all of them are up to date.
  // Whoever gets some fills them and calls `refreshed`.
  std::vector<Tensor> stale_on(const Tensor& primary, std::span<const Device> devices);
  void refreshed(uint64_t version, std::span<const Tensor> values);  // from the primary's `version`

 private:
  struct Replica {
    Device device;
    Tensor values;
    uint64_t version;      // of the primary, when the values were copied
    uint64_t own_version;  // of the values, right after
    bool is_current(const Tensor& primary) const {
      return version == primary.version() && own_version == values.version();
    }
  };
  Replica* find(Device device);

  ForkMutex mutex_{ForkOrder::sessions};
  std::vector<Replica> replicas_;
};

// Where an operator on `tensor` alone runs: on its device or, where it may have replicas, on that
// of the active guard.
Device device_read_on(const Tensor& tensor);
// `tensor` itself or, where it may have replicas and lives elsewhere, the one on `device`.
Tensor resolve_replica(const Tensor& tensor, Device device);

}  // namespace tenon
