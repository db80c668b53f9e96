// Caching, stream-aware memory of one device. The core owns caching, so that a backend only hands
// out raw memory.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include <tenon/core/base/fork.h>
#include <tenon/core/device.h>
#include <tenon/core/runtime/block_heap.h>
#include <tenon/core/storage.h>
#include <tenon/plugins/abi/abi.h>

namespace tenon {

// A freed block is handed out again at once: work that still reads it is ahead of its new owner in
// the same stream. Blocks that other streams use wait in `pending_` until those are done.
//
// The system is asked only where nothing that is free fits. Before it is, segments that are free as
// a whole go back where more would be reserved than a quarter beyond the most that was ever in use;
// so sizes that grow, and never come again, do not add up.
class Allocator {
 public:
  // Of what queued work is done with memory that was freed: what the device's stream has queued so
  // far and `uses`, or those alone, because nothing is queued on such memory without being filed
  // there.
  enum class Behind { stream_and_uses, uses };
  // `granularity` as in tn_memory_kind; 0 where the backend does not say.
  Allocator(DeviceContext& context, uint32_t kind, uint64_t granularity,
            Behind behind = Behind::stream_and_uses);
  // Memory that a stream graph keeps to itself: blocks come from the system and are handed out
  // again here only. Counted with the parent's, which gets it all when `release` was called and the
  // last tensor in it is gone.
  static Allocator* make_private(Allocator& parent);
  void release();  // ends it, now or with its last tensor
  // Of a private one: the storages that live in it.
  std::vector<Ref<Storage>> live_storages() const;

  // Memory whose next user is the device's stream. OutOfMemoryError after one retry with an emptied
  // cache. Where this throws, nothing has changed.
  Ref<Storage> allocate(uint64_t bytes);
  // Memory that the host may write right away: no queued work uses it.
  Ref<Storage> allocate_for_host(uint64_t bytes);
  // Takes the storage over, whose last handle is gone. Never throws.
  void free(Storage* storage) noexcept;
  void add_use(Storage& storage, Stream& stream, uint64_t ticket);
  // False where there is none; `end_use` strikes out what has been waited for.
  bool next_use(Storage& storage, Storage::Use& use);
  void end_use(Storage& storage, const Storage::Use& use);

  MemoryStats stats() const;
  // Bytes of live tensors, and of those freed that other streams still use.
  uint64_t in_use();
  // Gives all segments back none of whose blocks is in use, by queued work either. The caller has
  // waited for the device.
  void empty_cache();

 private:
  explicit Allocator(Allocator& parent);
  // A list through the storages themselves: adding to it cannot fail.
  struct List {
    Storage* first = nullptr;
    void add(Storage& s);
    void remove(Storage& s);
  };

  Ref<Storage> make(uint64_t bytes, bool for_host);
  BlockHeap::Block take(uint64_t bytes, bool for_host);
  BlockHeap::Block take_slowly(uint64_t bytes, bool for_host);
  void count(const BlockHeap::Block& block);
  BlockHeap::Block find(uint64_t bytes, bool for_host);
  void ask_system(uint64_t bytes, bool for_host);
  uint64_t segment_bytes(uint64_t bytes) const;
  uint64_t smallest_segment() const;
  void make_room(uint64_t bytes, uint64_t segment);
  uint64_t most_reserved(uint64_t bytes);
  void give_back(MemoryChunk& segment);
  void put_back(Storage& s);
  void collect_pending();
  void give_to_parent();

  DeviceContext& context_;
  const uint32_t kind_;
  const uint64_t granularity_;
  const Behind behind_;
  Allocator* const parent_ = nullptr;  // of a private one
  mutable ForkSpinLock own_lock_{ForkOrder::memory};
  SpinLock& lock_ = own_lock_;  // a private one shares its parent's lock and statistics
  MemoryStats own_stats_;
  MemoryStats& stats_ = own_stats_;
  // What the host writes has memory of its own, as it cannot have what was just freed; where either
  // has nothing that fits, it borrows from the other.
  BlockHeap heap_{false}, host_heap_{true};
  List pending_;
  uint64_t pending_bytes_ = 0;
  List live_;  // private ones only
  bool released_ = false;
  // How often a quarter more is allowed to be reserved, and what is looked at to find out: see
  // most_reserved.
  uint64_t more_quarters_ = 0, given_back_ = 0, peak_then_ = 0;
};

}  // namespace tenon
