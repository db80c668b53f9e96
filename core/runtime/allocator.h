// Caching, stream-aware memory of one device. The core owns caching, so that a backend only hands out raw memory.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_set>
#include <vector>

#include <tenon/core/device.h>
#include <tenon/core/runtime/spin_lock.h>
#include <tenon/core/storage.h>
#include <tenon/plugins/abi/abi.h>

namespace tenon {

// A freed block is handed out again at once: work that still reads it is ahead of its new owner in the same stream. Blocks that
// other streams use wait in `pending_` until those are done. Small blocks are cut out of slabs: asking the backend is slow and
// coarse.
class Allocator {
 public:
  // Of what queued work is done with memory that was freed: what the device's stream has queued so far and `uses`, or those alone,
  // because nothing is queued on such memory without being filed there.
  enum class Behind { stream_and_uses, uses };
  // `granularity` as in tn_memory_kind; 0 where the backend does not say.
  Allocator(DeviceContext& context, uint32_t kind, uint64_t granularity, Behind behind = Behind::stream_and_uses);
  // Memory that a stream graph keeps to itself: blocks come from the system and are handed out again here only. Counted with the
  // parent's, which gets it all when `release` was called and the last tensor in it is gone.
  static Allocator* make_private(Allocator& parent);
  void release();  // ends it, now or with its last tensor
  // Of a private one: the storages that live in it.
  std::vector<Ref<Storage>> live_storages() const;

  // Memory whose next user is the device's stream. OutOfMemoryError after one retry with an emptied cache.
  Ref<Storage> allocate(uint64_t bytes);
  // Memory that the host may write right away: no queued work uses it.
  Ref<Storage> allocate_for_host(uint64_t bytes);
  void free(Storage& storage);
  void add_use(Storage& storage, Stream& stream, uint64_t ticket);
  std::vector<Storage::Use> take_uses(Storage& storage);

  MemoryStats stats() const;
  // Bytes of live tensors, and of those freed that other streams still use.
  uint64_t in_use();
  // Gives all cached blocks back, and slabs none of whose blocks is in use. The caller has waited for the device.
  void empty_cache();

 private:
  explicit Allocator(Allocator& parent);
  struct Block {
    void* data;
    uint64_t ticket;  // of the device's stream when it was freed
  };
  struct Pending {
    void* data;
    uint64_t bytes;
    std::vector<Storage::Use> uses;
  };
  static constexpr int num_classes = 256;
  static int class_of(uint64_t bytes);
  static uint64_t class_bytes(int c);

  struct Slab {
    char* data;
    uint64_t bytes;
    int size_class;  // of the blocks that it was cut into
  };

  uint64_t largest_carved() const;
  uint64_t slab_bytes(uint64_t block_bytes) const;
  void* take(uint64_t block_bytes, int c, bool for_host);
  void* ask_system(uint64_t block_bytes);
  bool carve(uint64_t block_bytes, int c);
  void collect_pending();
  void put_back(void* data, uint64_t block_bytes);
  void free_blocks(int c, std::vector<Slab>& kept);
  void give_to_parent();

  DeviceContext& context_;
  const uint32_t kind_;
  const uint64_t granularity_;
  const Behind behind_;
  Allocator* const parent_ = nullptr;  // of a private one
  mutable SpinLock own_lock_;
  SpinLock& lock_ = own_lock_;  // a private one shares its parent's lock and statistics
  MemoryStats own_stats_;
  MemoryStats& stats_ = own_stats_;
  std::vector<Block> free_[num_classes];
  std::vector<Pending> pending_;
  std::vector<Slab> slabs_;
  std::unordered_set<Storage*> live_;  // private ones only
  bool released_ = false;
};

}  // namespace tenon
