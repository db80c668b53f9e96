// Plans by operator, attributes and descriptors, so that a repeated call looks up one hash and no more.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tenon/core/ops/op.h>
#include <tenon/core/runtime/poison_map.h>
#include <tenon/core/runtime/spin_lock.h>
#include <tenon/plugins/abi/abi.h>

namespace tenon {

class DeviceContext;

struct PlanOutput {
  DType dtype;
  Shape shape;
  Strides strides;  // row-major
  int64_t numel;
  int32_t alias;  // input it is, -1 for a tensor of its own, -2 for absent
  uint64_t bytes;
};

// An operator prepared for one set of descriptors. Lives until the cache is cleared.
struct PlanEntry {
  const Op* op = nullptr;
  tn_plan* plan = nullptr;  // null: nothing to run (every output is empty) or `decomposed`
  uint64_t cost_ns = 0;
  uint64_t workspace_bytes = 0;
  bool make_contiguous = false;  // the plugin takes contiguous inputs only
  bool decomposed = false;       // no plugin offers it, the core's decomposition does
  bool on_cpu = false;           // no plugin offers it and the user allowed the CPU instead
  std::vector<PlanOutput> outputs;
  std::vector<Footprint> read, written;  // of inputs and outputs, as the plan addresses them
  std::vector<Shape> input_shapes;       // for error texts
  Device device;

  uint64_t hash = 0;
  std::vector<int64_t> key;

  // "conv2d: (1, 3, 8, 8), (4, 3, 3, 3) on cpu:0"
  std::string describe() const;
  ~PlanEntry();
};

// The input that `out` is, value for value in memory, or -1.
int32_t alias_of(const Tensor& out, Inputs inputs);

// Words that identify a call; on the stack.
class PlanKey {
 public:
  PlanKey(const Op& op, Inputs inputs, const Attrs& attrs, uint32_t wanted, const Tensor* out);
  std::span<const int64_t> words() const { return {words_, count_}; }
  uint64_t hash() const { return hash_; }

 private:
  void add(int64_t word) {
    if (count_ == capacity_) grow();
    words_[count_++] = word;
  }
  void add(const Tensor& tensor);
  void grow();

  static constexpr size_t in_place = 192;
  int64_t buffer_[in_place];
  std::unique_ptr<int64_t[]> heap_;
  int64_t* words_ = buffer_;
  size_t count_ = 0, capacity_ = in_place;
  uint64_t hash_ = 0;
};

class PlanCache {
 public:
  explicit PlanCache(DeviceContext& context);
  // The entry for a call, made where it is new: shape rule, choice of plugin, plan. `out` is the given output of run_into, or null.
  PlanEntry& find(const Op& op, Inputs inputs, const Attrs& attrs, size_t num_scalars, uint32_t wanted, const Tensor* out);
  size_t size() const { return count_; }
  void clear();  // the caller has waited for the device
  // While pinned, no entry ends: a recording runs plans that nobody looks up any more.
  void pin();
  void unpin();

 private:
  PlanEntry& find_shared(const PlanKey& key, const Op& op, Inputs inputs, const Attrs& attrs, size_t num_scalars, uint32_t wanted,
                         const Tensor* out);
  void forget_all();
  PlanEntry* look_up(const PlanKey& key);
  void insert(std::unique_ptr<PlanEntry> entry);

  DeviceContext& context_;
  std::atomic<uint64_t> id_;  // of this filling; numbers are never used again
  SpinLock lock_;
  std::vector<std::unique_ptr<PlanEntry>> table_;    // open addressing, a power of two
  std::vector<std::unique_ptr<PlanEntry>> retired_;  // the filling before: another thread may be about to queue one of these
  std::vector<std::unique_ptr<PlanEntry>> pinned_;   // fillings from before that a recording may use
  size_t pins_ = 0;
  size_t count_ = 0;
};

// Makes an entry; throws what the shape rule throws, or UnsupportedError with every plugin's reason.
std::unique_ptr<PlanEntry> make_plan_entry(DeviceContext& context, const Op& op, Inputs inputs, const Attrs& attrs,
                                           size_t num_scalars, uint32_t wanted, const Tensor* out);

}  // namespace tenon
