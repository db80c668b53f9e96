// Guarded memory of checked mode (TENON_CHECK): every block lies between two guard zones, is filled
// with a pattern when it is handed out and with another one when it is given back, and is not used
// again at once.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tenon/core/base/fork.h>
#include <tenon/core/runtime/block_heap.h>
#include <tenon/core/runtime/check/access.h>
#include <tenon/core/runtime/check/changes.h>
#include <tenon/core/runtime/check/patterns.h>
#include <tenon/core/storage.h>

namespace tenon {
class Allocator;
}

namespace tenon::checked {

class Memory {
 public:
  Memory(DeviceContext& context, bool host_visible);
  Memory(const Memory&) = delete;

  // A guard zone has at least so many bytes. The one before a buffer may have 64 more: all buffers
  // are aligned to the 64 bytes that the ABI promises and to no more, so that a plugin which relies
  // on more shows.
  static constexpr uint64_t kGuard = 128;
  // What a block needs beyond the bytes of its buffer.
  static constexpr uint64_t kExtra = 2 * kGuard + 64;

  // Makes the buffer of a storage in its block. `graph` is the allocator of a stream graph, or
  // null. Throws std::bad_alloc.
  void hand_out(Storage& storage, const Allocator* graph);
  // Takes over the block of a storage that has no handle any more: it is looked at and filled once
  // the stream has reached `ticket`. False if the storage was not made here. Never waits.
  bool give_back(const Storage& storage, uint64_t ticket) noexcept;
  // Looks at the blocks that were given back and that no work uses any more. Returns those that are
  // free to be used again: the ones that were kept for longest, or all of them.
  std::vector<BlockHeap::Block> settle(bool all);

  // The memory of a stream graph, whose blocks stay as they are until it is taken back. After the
  // capture, `guard_graph` fills all of it. `refill_freed` fills the buffers that the body freed:
  // no replay may use what the one before left there. `graph_buffers` returns all of them.
  void guard_graph(const Allocator& graph);
  void refill_freed(const Allocator& graph);
  std::vector<const void*> graph_buffers(const Allocator& graph);
  // Puts the graph's blocks back into their heap. Blocks that other streams still use are treated
  // like any others from now on. The caller holds the lock of the allocator.
  void end_graph(const Allocator& graph) noexcept;

  // Waits for all work on `stream`, which may be null, before memory is checked. An error belongs
  // to earlier work, whose name is not known any more, and is kept for the next caller that waits.
  // The only error that this returns is that the device is lost.
  tn_error* finish_earlier(tn_stream* stream);
  // Does the same for the work that is to be checked. `error` is its error so far, and afterwards
  // its first one. Returns false if nothing can be said about it: the device is lost, or the
  // process is ending and does not wait for other threads.
  bool finish(tn_error*& error, tn_stream* stream);

  // Says whose buffer this is, for what is found later: "output 0 of abs: (3) on joint:0".
  void label(const void* address, const std::string& owner);
  // Returns what was said; empty if nothing was.
  std::string owner_of(const void* address);
  // Looks at the guard zones of the buffers with these addresses and repairs them. Returns for each
  // what was written there, "4 bytes behind the end of the buffer of 12 bytes, the first of them
  // byte 12"; empty if nothing was.
  std::vector<std::string> spoilt_guards(std::span<const void* const> addresses);
  // Looks at the blocks that were given back last. Returns what was written into one of them, and
  // whose it was; empty if nothing was.
  std::string written_after_free();
  // Logs what was found, and has it thrown by the next synchronize().
  void report(const std::string& text);
  // At exit, after all blocks that were given back have been settled: looks at the others. `close`
  // afterwards.
  void look_at_live();
  void close() { access_.close(); }

  // Fills part of the memory; false if the device does not do it.
  bool fill(char* data, uint64_t bytes, Pattern pattern);
  Access& access() { return access_; }

 private:
  // Part of the memory, and where the host can look at it.
  struct Part {
    char* from;
    uint64_t bytes;
    const unsigned char* host = nullptr;
  };

  // What is known of a block.
  struct Zone {
    Buffer buffer;
    BlockHeap::Block block;
    std::string owner;
    const Allocator* graph = nullptr;  // to whose memory it belongs
    uint64_t ticket = 0;  // the work up to this may still use it, after it was given back
    bool given_back = false;
    bool filled = false;   // the device filled the guards, or now the whole buffer
    Zone* next = nullptr;  // the zone that was given back after this one

    char* begin() const { return static_cast<char*>(block.data); }
    char* end() const { return begin() + block.bytes; }
    Part before() const { return {begin(), static_cast<uint64_t>(buffer.data - begin())}; }
    Part behind() const { return {buffer.data + buffer.bytes, kGuard}; }
    Part whole() const {
      return {begin(), static_cast<uint64_t>(buffer.data - begin()) + buffer.bytes + kGuard};
    }
  };
  using Room = std::vector<unsigned char>;

  Zone* find(const void* address);
  template <class F>
  void each_of(const Allocator& graph, F&& visit);
  bool read(std::span<Part> parts, Room& room);
  bool fill_whole(const Zone& zone, Pattern pattern);
  bool fill_guards(const Zone& zone);
  std::string spoilt(const Zone& zone, const Part& before, const Part& behind) const;
  std::string spoilt(const Zone& zone);
  std::string written_into(const Zone& zone);
  void settle_one(Zone& zone);
  std::unique_ptr<Zone> remove(Zone* zone);

  DeviceContext& context_;
  Access access_;
  // Held while blocks are looked at that nobody uses any more, so that none of them disappears.
  // `kept_` belongs to it.
  ForkMutex looking_{ForkOrder::memory};
  std::vector<Zone*> kept_;  // filled, the oldest first
  uint64_t kept_bytes_ = 0;
  ForkMutex mutex_{ForkOrder::tables};                 // for a moment only; protects what follows
  std::map<uintptr_t, std::unique_ptr<Zone>> zones_;   // by the begin of the block
  Zone *first_left_ = nullptr, *last_left_ = nullptr;  // given back, and not looked at yet
};

}  // namespace tenon::checked
