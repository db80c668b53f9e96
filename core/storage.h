// A block of device memory and the queued work that uses it.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include <tenon/core/api.h>
#include <tenon/core/base/pool.h>
#include <tenon/core/base/ref.h>

namespace tenon {

class Allocator;
class DeviceContext;
class DeviceStream;
struct MemoryChunk;
struct AdoptedMemory;

// Views share a storage. The memory returns to its allocator with the last handle. The next user of
// the block is queued behind this one on the stream of its context, so only work on other streams
// (`uses`) has to be waited for.
struct Storage : RefCounted, Pooled<Storage> {
  uint32_t slot = 0;     // in its chunk; beside the count of references, to fill two lines of cache
  void* data = nullptr;  // null if bytes is 0
  uint64_t bytes = 0;
  DeviceContext* context = nullptr;  // from whose memory it is
  Allocator* allocator = nullptr;
  // The block of the allocator (core/runtime/block_heap.h).
  uint64_t block_bytes = 0;
  // Memory that is the user's has the slot kAdopted, and no allocator takes it back
  // (core/runtime/adopted.h).
  union {
    MemoryChunk* chunk = nullptr;
    AdoptedMemory* owner;
  };
  static constexpr uint32_t kAdopted = ~uint32_t{0};
  bool adopted() const { return slot == kAdopted; }
  std::atomic<uint64_t> written{
      ~uint64_t{0}};  // after `empty`: how many bytes from the first on have been written
  std::atomic<uint64_t> version{0};  // incremented by every mutator
  // The ticket of the last queued write, which any stream of the device may make. Who is about to
  // read what was written calls await_values (core/runtime/order.h).
  std::atomic<uint64_t> write_ticket{0};
  std::atomic<bool> exported{false};  // the address was given to somebody who may write there
  std::atomic<uint32_t> held_by_programs{0};  // of the handles, those of core/graph/program_ref.h
  // The number of the present values, which no other values of any storage have had; it is given
  // when somebody first asks. Values that were queued count as present, so ask before you queue
  // what reads them. It is 0, which says nothing, for memory that others may write to unseen.
  TENON_API uint64_t values_number();
  struct Use {
    DeviceStream* stream;
    uint64_t ticket;
  };
  // Uses by other streams. The lock of the allocator protects them, and also the links of the list
  // in which the allocator keeps this storage: the list of freed storages that are still used or,
  // in private memory, the list of live ones.
  std::vector<Use> uses;
  Storage *previous = nullptr, *next = nullptr;

  // Notes that work on `stream` reads or writes this memory until `ticket`.
  void add_use(DeviceStream& stream, uint64_t ticket);
  // Makes later work on the stream of its context wait for `uses`. Call it before the memory is
  // changed in place. If this throws, the uses that are not waited for yet are kept.
  void wait_for_uses();
  // Forgets failures of the last owner of the memory, which do not concern the new owner. It is for
  // memory that is handed out without values.
  void forget_failed();

 private:
  friend class InPlaceChange;
  std::atomic<uint64_t> values_number_{0};  // 0 until somebody asks
};
void destroy(Storage*);

// An in-place change while it is queued; every mutator makes one. It first waits for other streams
// that still read the old values. Version and number change last, even if queueing failed, so that
// a reader who takes one of them and then the values never mistakes old values for new ones.
class InPlaceChange {
 public:
  explicit InPlaceChange(Storage& storage) : storage_(&storage) { storage.wait_for_uses(); }
  // The same for a change that the stream of `by` makes, a context of the device.
  InPlaceChange(Storage& storage, DeviceContext& by);
  InPlaceChange(InPlaceChange&& o) noexcept : storage_(std::exchange(o.storage_, nullptr)) {}
  ~InPlaceChange() {
    if (!storage_) return;
    storage_->values_number_.store(0, std::memory_order_relaxed);
    storage_->version.fetch_add(1, std::memory_order_release);
  }

 private:
  Storage* storage_;
};

}  // namespace tenon
