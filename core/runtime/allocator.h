// The caching allocator of a stream, which knows the streams that use its memory. The core does the
// caching, so a backend only provides raw memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <tenon/core/base/fork.h>
#include <tenon/core/device.h>
#include <tenon/core/runtime/block_heap.h>
#include <tenon/core/runtime/segments.h>
#include <tenon/core/storage.h>
#include <tenon/plugins/abi/abi.h>

namespace tenon {

namespace checked {
class Memory;
}

// A freed block is reused at once: work that still reads it is ahead of the next owner in the same
// stream. Blocks that other streams still use wait in `pending_` until those have finished.
//
// The allocator asks the backend for more only if no free block fits. Before it does, it returns
// segments that are completely free if more would be reserved than a quarter above the highest use
// so far. Otherwise a series of growing sizes, each used only once, would accumulate segments.
//
// In checked mode (TENON_CHECK), each block has guard zones, and freed blocks are kept for a while
// before they are reused; see core/runtime/check/memory.h. In the memory of stream graphs no block
// is used twice then.
class Allocator {
 public:
  // For which queued work a freed block waits. `stream_and_uses`: for everything that is queued on
  // the device's stream so far, and for the `uses` of the storage. `uses`: only for the latter;
  // then each use of the memory has to be noted there.
  enum class WaitsFor { stream_and_uses, uses };
  // `kind` is the index of `description` among the kinds of the device.
  Allocator(DeviceContext& context, uint32_t kind, const tn_memory_kind& description,
            WaitsFor waits_for = WaitsFor::stream_and_uses);
  ~Allocator();
  // Makes an allocator of memory that only a stream graph uses. Its segments come from the system,
  // and its blocks are reused only by that graph. It counts in the statistics of the parent, to
  // which all memory goes after `release` was called and the last tensor in it is gone.
  static Allocator* make_private(Allocator& parent);
  void release();  // destroys it, now or together with its last tensor
  // For a private allocator: returns the storages that live in it.
  std::vector<Ref<Storage>> live_storages() const;

  // Returns memory for work on the stream of the context. Throws an OutOfMemoryError after one
  // retry with an emptied cache. If this throws, nothing has changed.
  Ref<Storage> allocate(uint64_t bytes);
  // Returns memory that the host may write immediately, because no queued work uses it.
  Ref<Storage> allocate_for_host(uint64_t bytes);
  // Returns such memory for another stream, which writes it while the device computes, or null if
  // that would need much more memory than work in order does: a program that is far ahead of its
  // device would have all that it copies in memory at once. Null in checked mode.
  Ref<Storage> allocate_apart(uint64_t bytes);
  // Takes ownership of a storage whose last handle is gone. Never throws.
  void free(Storage* storage) noexcept;
  void add_use(Storage& storage, DeviceStream& stream, uint64_t ticket);
  // `next_use` returns a use that is not finished, or false if there is none. `end_use` removes a
  // use that was waited for.
  bool next_use(Storage& storage, Storage::Use& use);
  void end_use(Storage& storage, const Storage::Use& use);
  std::vector<Storage::Use> uses(Storage& storage);

  MemoryStats stats() const;
  // Returns the bytes of live tensors, and of freed ones that other streams still use.
  uint64_t in_use();
  // Returns all segments to the system of which no block is in use, by tensors or by queued work.
  // The caller has waited for the device.
  void empty_cache();
  // Returns null unless in checked mode. A private allocator returns that of its parent.
  checked::Memory* checked() const { return checked_; }
  // In checked mode, at exit: looks at all memory that was not looked at before.
  void look_at_all();

 private:
  explicit Allocator(Allocator& parent);
  // A list that is linked through the storages themselves, so adding to it cannot fail.
  struct List {
    Storage* first = nullptr;
    void add(Storage& s);
    void remove(Storage& s);
  };

  Ref<Storage> make(uint64_t bytes, bool for_host);
  void hold(Storage& s, const BlockHeap::Block& block, uint64_t bytes);
  [[gnu::cold]] void note(Storage& s);
  [[gnu::cold]] BlockHeap::Block take_checked(uint64_t bytes, bool for_host);
  void reuse_checked(bool all);
  BlockHeap::Block take(uint64_t bytes, bool for_host);
  BlockHeap::Block take_slow(uint64_t bytes, bool for_host);
  BlockHeap::Block take_apart(uint64_t bytes);
  void count(const BlockHeap::Block& block) {
    stats_.allocations++;
    stats_.allocated += block.bytes;
    stats_.peak_allocated = std::max(stats_.peak_allocated, stats_.allocated);
  }
  BlockHeap::Block find(uint64_t bytes, bool for_host);
  void ask_system(uint64_t bytes, bool for_host);
  uint64_t segment_bytes(uint64_t bytes) const;
  uint64_t smallest_segment() const;
  void make_room(uint64_t bytes, uint64_t segment);
  uint64_t max_reserved(uint64_t bytes);
  void give_back(MemoryChunk& segment);
  void put_back(Storage& s);
  void collect_pending();
  void return_to_parent();

  DeviceContext& context_;
  const uint32_t kind_;
  const uint64_t alignment_;
  const uint64_t granularity_;  // 0 if the backend does not say
  const WaitsFor waits_for_;
  const std::unique_ptr<checked::Memory> own_checked_;
  checked::Memory* const checked_;
  Allocator* const parent_ = nullptr;  // of a private one
  const bool notes_blocks_ = parent_ || checked_;
  mutable ForkSpinLock own_lock_{ForkOrder::memory};
  SpinLock& lock_ = own_lock_;  // a private one shares its parent's lock and statistics
  MemoryStats own_stats_;
  MemoryStats& stats_ = own_stats_;
  Segments own_segments_;
  Segments& segments_ = own_segments_;  // its parent's, to which its memory comes back
  // Memory that the host writes has a heap of its own, because it cannot reuse blocks that were
  // just freed. If one of the heaps has no block that fits, it takes one from the other.
  BlockHeap heap_{false}, host_heap_{true};
  List pending_;
  uint64_t pending_bytes_ = 0;
  List live_;  // private ones only
  bool released_ = false;
  // How much more may be reserved once copies run beside the work of the device. Half of it is for
  // the copies, so that other work does not have to wait for the memory that they use.
  static constexpr uint64_t kMaxApart = uint64_t{64} << 20;
  bool lends_apart_ = false;
  // How many more quarters may be reserved, and the numbers that decide about it: see max_reserved.
  uint64_t extra_quarters_ = 0, given_back_ = 0, peak_at_last_return_ = 0;
};

}  // namespace tenon
