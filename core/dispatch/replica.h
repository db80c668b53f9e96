// Parameters and buffers that may be read on several devices.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <tenon/core/base/fork.h>
#include <tenon/core/tensor.h>

namespace tenon {

struct Call;

// Lets operators whose other inputs are on another device read a replica of `parameter_or_buffer`
// there. The replica is made when it is first needed, and refreshed when the values of the primary
// have changed. Gradients of replicas are added to that of the primary, in the order of device
// names, when the backward pass ends. In-place changes of a replica, such as running statistics,
// are lost when it is next refreshed, which is not before the end of a ReplicaScope: only the
// values of the primary last.
TENON_API void allow_replicas(const Tensor& parameter_or_buffer);
TENON_API bool has_replicas(const Tensor& parameter_or_buffer);
// How backward passes sum what several devices compute of the gradient of a tensor that may have
// replicas, from now on.
struct GradientSums {
  uint64_t bucket_bytes;  // how many bytes of gradients are summed at once while the pass runs
  bool deferred;          // passes leave the gradients of other devices there: see no_sync()
};
TENON_API void set_gradient_sums(const Tensor& parameter, GradientSums how);
TENON_API void set_gradient_sums(std::span<const std::pair<Tensor, GradientSums>> parameters);
TENON_API bool defers_gradient_sums(const Tensor& parameter);
// Whether any tensor may have replicas.
bool replicas_exist();
// Refreshes all replicas of `tensors` on `devices` in one step if a plugin joins the devices. The
// first of `devices` must be the device of the tensors. Other replicas, and those on devices of
// another kind, are refreshed as usual when they are next read.
TENON_API void refresh_replicas(std::span<const Tensor> tensors, std::span<const Device> devices);

// As torch.nn.parallel.DistributedDataParallel.
constexpr uint64_t kBucketBytes = uint64_t{25} << 20;

// While one is alive, this thread computes parts of one call on several devices. A replica is
// brought up to date once in it, so what a part changes in its replica is what it reads afterwards;
// and a parameter or buffer that is changed in place under the guard of another device is changed
// in the replica there, not in the primary.
class TENON_API ReplicaScope {
 public:
  ReplicaScope() noexcept;
  ~ReplicaScope();
  ReplicaScope(const ReplicaScope&) = delete;
  ReplicaScope& operator=(const ReplicaScope&) = delete;
  static bool active();
  // The scope of this thread, and how a thread that computes parts for it goes on in it, until it
  // ends.
  static uint64_t current();
  static void continue_in(uint64_t scope);

 private:
  uint64_t outer_;  // the scope around it
};

class ReplicaSet : public std::enable_shared_from_this<ReplicaSet> {
 public:
  ReplicaSet();
  ~ReplicaSet();
  ReplicaSet(const ReplicaSet&) = delete;
  ReplicaSet& operator=(const ReplicaSet&) = delete;
  // Returns the values of `primary` on `device`, detached.
  Tensor on(const Tensor& primary, Device device);
  // The replica there, an undefined tensor if there is none, and whether the present scope has read
  // it.
  Tensor known_on(Device device);
  bool was_read_on(Device device);
  // Returns the replicas on `devices` if at least one of them is out of date, and nothing
  // otherwise. Missing ones are created. The caller has to fill them and then call `refreshed`.
  std::vector<Tensor> stale_on(const Tensor& primary, std::span<const Device> devices);
  void refreshed(uint64_t version, std::span<const Tensor> values);  // of the primary
  // Returns the values on `device` if they were changed in place in the current scope.
  Tensor changed_on(Device device);
  GradientSums gradient_sums() const {
    return {bucket_bytes_.load(std::memory_order_relaxed),
            deferred_.load(std::memory_order_relaxed)};
  }
  void set_gradient_sums(GradientSums how) {
    bucket_bytes_.store(how.bucket_bytes, std::memory_order_relaxed);
    deferred_.store(how.deferred, std::memory_order_relaxed);
  }
  // What passes have left on other devices; behind the lock of all gradients, in engine.cpp.
  std::vector<std::pair<Device, Tensor>> held;

 private:
  struct Replica {
    Device device;
    Tensor values;
    uint64_t version;      // of the primary, when the values were copied
    uint64_t own_version;  // of the values, right after the copy
    uint64_t scope = 0;    // the ReplicaScope in which it was read last
    bool is_current(const Tensor& primary) const {
      return version == primary.version() && own_version == values.version();
    }
  };
  Replica* find(Device device);
  Tensor bring(const Tensor& primary, Device device);

  ForkMutex mutex_{ForkOrder::sessions};
  std::vector<Replica> replicas_;
  std::atomic<uint64_t> bucket_bytes_{kBucketBytes};
  std::atomic<bool> deferred_{false};
};

// Returns the device on which an operator runs whose only input is `tensor`: its device or, if it
// may have replicas, the device of the active DeviceGuard.
Device device_read_on(const Tensor& tensor);
// Returns the device on which an operator with these inputs runs: that of the first one that is
// tied to its device. If all of them may have replicas, it is the device of the active guard or,
// without one, that of the first. Without any input it is the default device.
Device device_of_call(std::span<const Tensor* const> inputs);
// `tensor` itself or, where it may have replicas and lives elsewhere, the one on `device`.
TENON_API Tensor resolve_replica(const Tensor& tensor, Device device);
// A view of a parameter that is read on the device of the guard is a view of its replica there:
// runs the ExecuteRule of the call with what is there. Returns false, and does nothing, without a
// guard, or where no input may have replicas.
bool execute_on_guard_device(const Call& call, std::vector<Tensor>& outputs);
// Whether a change of `tensor` in place has to be made in a replica, and which one that is.
bool changes_replica(const Tensor& tensor);
Tensor replica_to_change(const Tensor& tensor);
// Returns the replica that an operator which runs now reads in the place of `tensor`, if it was
// changed in place in this scope, otherwise an undefined tensor.
Tensor changed_replica(const Tensor& tensor);

}  // namespace tenon
