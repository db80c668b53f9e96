// A block of device memory and what is queued on it. Not installed.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include <tenon/core/base/pool.h>
#include <tenon/core/base/ref.h>

namespace tenon {

class Allocator;
class DeviceContext;
class Stream;
struct MemoryChunk;

// Views share a storage. Memory goes back to its allocator with the last handle; the next user of
// the block is ordered behind this one by the device's stream, so only work on other streams
// (`uses`) has to be waited for.
struct Storage : RefCounted, Pooled<Storage> {
  void* data = nullptr;  // null where bytes is 0
  uint64_t bytes = 0;
  DeviceContext* context = nullptr;
  Allocator* allocator = nullptr;
  // What the allocator handed out (core/runtime/block_heap.h).
  uint64_t block_bytes = 0;
  MemoryChunk* chunk = nullptr;
  uint32_t slot = 0;
  std::atomic<uint64_t> written{
      ~uint64_t{0}};  // of what `empty` made: the bytes written in one piece from the first on
  std::atomic<uint64_t> version{0};  // raised by every mutator
  std::atomic<uint64_t> ticket{0};   // of the last queued write, on the device's own stream
  struct Use {
    Stream* stream;
    uint64_t ticket;
  };
  // By other streams; guarded by the allocator's lock, like the links of the list that the
  // allocator keeps it in: of those freed that are still in use or, in memory of its own, of the
  // live ones.
  std::vector<Use> uses;
  Storage *previous = nullptr, *next = nullptr;

  // Work on `stream` reads or writes this memory until `ticket`.
  void add_use(Stream& stream, uint64_t ticket);
  // Makes later work on the device's own stream wait for `uses`: before the memory is changed in
  // place. Where this throws, what is not waited for yet is kept.
  void wait_for_uses();
  // Of memory that is handed out unwritten: its last owner's failures are not the new one's.
  void forget_failed();
};
void destroy(Storage*);

}  // namespace tenon
