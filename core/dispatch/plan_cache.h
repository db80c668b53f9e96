// Plans by operator, attributes and descriptors, so that a repeated call looks up one hash and no
// more.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/ref.h>
#include <tenon/core/dispatch/op.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/runtime/prepared_plan.h>
#include <tenon/plugins/abi/abi.h>

namespace tenon {

struct PlanOutput {
  DType dtype;
  Shape shape;
  int64_t numel;
  OutputKind kind;
  uint32_t input;  // the one that it is, where it is in place
  uint64_t bytes;
};

class PlanCache;

// An operator prepared for one set of descriptors. Whoever holds a count may queue it; with the
// last one it waits in its cache until the device's stream has come to all that was queued.
struct PlanEntry final : RefCounted, PreparedPlan {
  CallDesc call;
  const plugins::Backend* planner = nullptr;  // whose plan it is
  // `plan` is null where there is nothing to run (every output is empty) or `decomposed`.
  bool make_contiguous = false;     // the plugin takes contiguous inputs only
  bool decomposed = false;          // no plugin offers it, the core's decomposition does
  bool on_cpu = false;              // no plugin offers it and the user allowed the CPU instead
  std::vector<PlanOutput> outputs;  // flat where the plan is: they have the call's shape
  Device device;

  uint64_t hash = 0;
  std::vector<int64_t> key;

  PlanCache* cache = nullptr;
  std::atomic<bool> used{true};  // since the hand of the clock came by, which passes a new one once
  uint64_t ticket = 0;           // of the device's stream when the last holder let go
  PlanEntry* next_to_end = nullptr;

  explicit PlanEntry(CallDesc call) : call(std::move(call)) {}
  const char* name() const override;
  std::string describe(const Shape* shape = nullptr) const override;
  ~PlanEntry();
};
void destroy(PlanEntry* entry);

// The shape that all tensors of a pointwise call have, if none has gaps: how they divide it into
// dimensions does not matter to the kernel. Null for any other call.
const Shape* common_shape(const Call& call);

// Words that identify a call; on the stack.
class PlanKey {
 public:
  // `common` as of common_shape.
  PlanKey(const Call& call, const Shape* common);
  std::span<const int64_t> words() const { return {words_, count_}; }
  uint64_t hash() const { return hash_; }

 private:
  void add(int64_t word) {
    if (count_ == capacity_) grow();
    words_[count_++] = word;
  }
  void add(const Tensor& tensor);
  void add_flat(const Call& call);
  void grow();

  static constexpr size_t kInPlaceWords = 192;
  int64_t buffer_[kInPlaceWords];
  std::unique_ptr<int64_t[]> heap_;
  int64_t* words_ = buffer_;
  size_t count_ = 0, capacity_ = kInPlaceWords;
  uint64_t hash_ = 0;
};

// Shapes that never come back would fill the memory, so past a number of plans each new one takes
// the place of one that was not used for long: a hand goes round the table and takes the first
// entry that nobody used since it last came by.
class PlanCache final : public PlanStore {
 public:
  explicit PlanCache(DeviceContext& context, size_t most = 8192) : context_(context), most_(most) {}
  // The entry for a call, made where it is new: shape rule, choice of plugin, plan. `common` as of
  // common_shape. The calling thread keeps it until it looks for another whose key has the same
  // place among its latest answers; who makes other calls before the last use of it takes a Ref.
  PlanEntry& find(const Call& call, const Shape* common);
  size_t size() const { return count_.load(std::memory_order_relaxed); }
  size_t most() const { return most_; }
  // While pinned, no entry ends: a recording runs plans that nobody looks up any more.
  void pin() override;
  void unpin() override;

 private:
  friend void destroy(PlanEntry*);
  Ref<PlanEntry> find_shared(const PlanKey& key, const Call& call, const Shape* common);
  PlanEntry* look_up(const PlanKey& key);
  void insert(Ref<PlanEntry> entry);
  void grow();
  Ref<PlanEntry> take_unused();
  Ref<PlanEntry> remove(size_t at);
  void end_later(PlanEntry* entry);
  PlanEntry* take_ended();

  DeviceContext& context_;
  const size_t most_;
  ForkSpinLock lock_{ForkOrder::memory};
  std::vector<Ref<PlanEntry>> table_;  // open addressing, a power of two
  std::atomic<size_t> count_{0};
  size_t hand_ = 0;
  PlanEntry *first_ended_ = nullptr, *last_ended_ = nullptr;  // in the order of their tickets
  size_t pins_ = 0;
};

// The plans of a device.
inline PlanCache& plans_of(const DeviceContext& context) {
  return static_cast<PlanCache&>(*context.plans);
}

// Makes an entry; throws what the shape rule throws, or UnsupportedError with every plugin's
// reason.
Ref<PlanEntry> make_plan_entry(DeviceContext& context, CallDesc call);

}  // namespace tenon
