// Caching, stream-aware memory of one device. The core owns caching, so that a backend only hands out raw memory.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include <tenon/core/device.h>
#include <tenon/core/runtime/spin_lock.h>
#include <tenon/core/storage.h>
#include <tenon/plugins/abi/abi.h>

namespace tenon {

// A freed block is handed out again at once: work that still reads it is ahead of its new owner in the same stream. Blocks that
// other streams use wait in `pending_` until those are done.
class Allocator {
 public:
  Allocator(DeviceContext& context, uint32_t kind, uint64_t alignment);

  // Memory whose next user is the device's stream. OutOfMemoryError after one retry with an emptied cache.
  Ref<Storage> allocate(uint64_t bytes);
  // Memory that the host may write right away: no queued work uses it.
  Ref<Storage> allocate_for_host(uint64_t bytes);
  void free(Storage& storage);
  void add_use(Storage& storage, Stream& stream, uint64_t ticket);
  std::vector<Storage::Use> take_uses(Storage& storage);

  MemoryStats stats() const;
  // Gives all cached blocks back. The caller has waited for the device.
  void empty_cache();

 private:
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

  void* take(uint64_t block_bytes, int c, bool for_host);
  void* ask_system(uint64_t block_bytes, int c);
  bool carve(uint64_t block_bytes, int c);
  void collect_pending();
  void put_back(void* data, uint64_t block_bytes);

  DeviceContext& context_;
  const uint32_t kind_;
  const uint64_t alignment_;
  mutable SpinLock lock_;
  std::vector<Block> free_[num_classes];
  std::vector<Pending> pending_;
  struct Slab {
    void* data;
    uint64_t bytes;
  };
  std::vector<Slab> slabs_;  // that small blocks are carved from; kept
  MemoryStats stats_;
};

}  // namespace tenon
