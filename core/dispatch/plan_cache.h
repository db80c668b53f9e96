// Finds plans by operator, attributes and descriptors, so that a repeated call needs only one hash
// look-up.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/ref.h>
#include <tenon/core/dispatch/op.h>
#include <tenon/core/layout.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/runtime/prepared_plan.h>
#include <tenon/plugins/abi/abi.h>

namespace tenon {

struct PlanOutput {
  DType dtype;
  Shape shape;
  int64_t numel;
  OutputKind kind;
  uint32_t input;  // the input that is changed, if the kind is in_place
  uint64_t bytes;
  Strides strides;        // of a new tensor
  bool row_major = true;  // what they are
};

class PlanCache;

// An operator that is prepared for one set of descriptors. Whoever holds a reference may queue it.
// After the last reference is gone, it waits in its cache until the stream of the device has
// finished everything that was queued.
struct PlanEntry final : RefCounted, PreparedPlan {
  CallDesc call;
  std::unique_ptr<char[]> texts;              // of its attributes, if they are no literals
  const plugins::Backend* planner = nullptr;  // the plugin that made the plan
  // `plan` is null if there is nothing to run, because every output is empty, or if `widened`,
  // `decomposed` or `on_cpu` is true.
  bool make_contiguous = false;  // the plugin takes only contiguous inputs …
  // … in this format: of tensors of its rank, if it moves the channels; all others are row-major.
  MemoryFormat copy_format = contiguous_format;
  // The order in which the plugin sees the dimensions of a pointwise operator; empty if it is
  // their own.
  Shape order;
  bool as_lines = false;  // the plugin sees tensors with an order of their own as lines
  bool as_rows = false;   // the plugin sees rows of channels
  // Whether the call, as one that makes a new tensor, is known to make one of the dtype and shape
  // of `out` (write_over.h).
  std::atomic<bool> makes_like_out{false};
  bool widened = false;     // no plugin offers it in a half type, so it runs in f32
  bool decomposed = false;  // no plugin offers it, so the core decomposes it
  bool on_cpu = false;      // no plugin offers it, and the CPU may do it
  // Why the plugins refused the call as it was made, a line "\n  <plugin>: <reason>" for each. It
  // is kept if one of the four above is true.
  std::string refusals;
  std::vector<PlanOutput> outputs;  // if the plan is flattened, they have the shape of the call

  uint64_t hash = 0;
  std::vector<int64_t> key;

  PlanCache* cache = nullptr;
  std::atomic<bool> used{true};  // since the clock hand last passed it; a new one counts as used
  uint64_t ticket = 0;           // of the stream of the device when the last reference was released
  PlanEntry* next_to_destroy = nullptr;

  // The format in which a tensor of this shape is copied for the plugin.
  MemoryFormat copies_in(const Shape& shape) const {
    return moves_channels(copy_format) && shape.size() == rank_of(copy_format) ? copy_format
                                                                               : contiguous_format;
  }
  // Whether the plugin is asked for an output that is neither row-major nor seen as such.
  bool proposes() const;
  explicit PlanEntry(CallDesc call) : call(std::move(call)) {}
  const char* name() const override;
  std::string describe(const Shape* shape = nullptr) const override;
  std::string signature(const Shape* shape = nullptr) const override;
  ~PlanEntry();
};
void destroy(PlanEntry* entry);

// Returns a tensor whose shape and order in memory all tensors of a call have, if none of them has
// gaps and the operator computes element by element. The kernel does not depend on how this layout
// divides the elements into dimensions. Returns null for any other call.
const TensorImpl* common_layout(const Call& call);

// The words that identify a call. It lives on the stack.
class PlanKey {
 public:
  // `common` is the result of common_layout.
  PlanKey(const Call& call, const TensorImpl* common);
  std::span<const int64_t> words() const { return {words_, count_}; }
  uint64_t hash() const { return hash_; }

 private:
  void add(int64_t word) {
    if (count_ == capacity_) grow();
    words_[count_++] = word;
  }
  void add(const Tensor& tensor);
  void add(std::string_view text);
  void add_flat(const Call& call);
  void grow();

  static constexpr size_t kInPlaceWords = 192;
  int64_t buffer_[kInPlaceWords];
  std::unique_ptr<int64_t[]> heap_;
  int64_t* words_ = buffer_;
  size_t count_ = 0, capacity_ = kInPlaceWords;
  uint64_t hash_ = 0;
};

// Limits the number of plans, because shapes that are never used again would fill the memory. When
// the cache is full, each new plan replaces one that was not used for long: a clock hand goes round
// the table and takes the first entry that was not used since it last passed.
class PlanCache final : public PlanStore {
 public:
  explicit PlanCache(DeviceContext& context, size_t capacity = 8192)
      : context_(context), capacity_(capacity) {}
  // Returns the entry for a call. If it is new, it is made: shape rule, choice of plugin, plan.
  // `common` is the result of common_layout. The calling thread keeps the entry until it looks for
  // another one that takes the same slot of its recent results. A caller that makes other calls
  // before the last use of the entry has to take a Ref.
  PlanEntry& find(const Call& call, const TensorImpl* common);
  // The same, but null where it would have to be made.
  PlanEntry* find_known(const Call& call, const TensorImpl* common);
  // The same for a call that nobody makes now: the entry that such a call would get.
  Ref<PlanEntry> find(const CallDesc& call);
  // Makes an entry that is not in the table, for who keeps it. It is destroyed as all others are,
  // and has texts of its own: those of the call need not last.
  Ref<PlanEntry> make_apart(CallDesc call);
  size_t size() const { return count_.load(std::memory_order_relaxed); }
  size_t capacity() const { return capacity_; }
  // While the cache is pinned, no entry is destroyed, because a recording runs plans that are not
  // looked up again.
  void pin() override;
  void unpin() override;

 private:
  friend void destroy(PlanEntry*);
  Ref<PlanEntry> find_shared(const PlanKey& key, const Call& call, const TensorImpl* common);
  PlanEntry* look_up(const PlanKey& key);
  void insert(Ref<PlanEntry> entry);
  void grow();
  Ref<PlanEntry> take_unused();
  Ref<PlanEntry> remove(size_t at);
  void destroy_later(PlanEntry* entry);
  PlanEntry* take_destroyable();

  DeviceContext& context_;
  const size_t capacity_;
  ForkSpinLock lock_{ForkOrder::memory};
  std::vector<Ref<PlanEntry>> table_;  // open addressing; the size is a power of two
  std::atomic<size_t> count_{0};
  size_t clock_hand_ = 0;
  PlanEntry *first_to_destroy_ = nullptr,
            *last_to_destroy_ = nullptr;  // in the order of their tickets
  size_t pins_ = 0;
};

// Returns the plans of a device.
inline PlanCache& plans_of(const DeviceContext& context) {
  return static_cast<PlanCache&>(*context.plans);
}

// Makes an entry. Throws what the shape rule throws, or an UnsupportedError with the reason of
// every plugin.
Ref<PlanEntry> make_plan_entry(DeviceContext& context, CallDesc call);

}  // namespace tenon
