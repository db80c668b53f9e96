// Keeps track of the free bytes of a device's memory: best fit with splitting and merging for large
// blocks, and slabs of equal blocks for small ones. It neither asks the system nor takes a lock.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>

#include <tenon/core/runtime/stream.h>

namespace tenon {

class BlockHeap;

// A part of a segment, which is one allocation of the backend. The chunks of a segment are adjacent
// and linked.
struct MemoryChunk {
  enum class State : uint8_t { free, kept, used, slab };
  char* data = nullptr;
  uint64_t bytes = 0;
  uint64_t ticket = 0;  // of the stream of the device when the chunk was last freed
  BlockHeap* heap = nullptr;
  MemoryChunk *before = nullptr, *after = nullptr;   // neighbours in the segment
  MemoryChunk *previous = nullptr, *next = nullptr;  // in a list of the heap
  State state = State::free;

  // A chunk can be a slab: numbered blocks of one size. The blocks from `fresh` on were never
  // handed out. The list of free blocks is in `slots`, because the host may not be able to write to
  // the memory itself.
  struct Slot {
    uint64_t ticket;
    uint32_t next;
  };
  static constexpr uint32_t kNone = ~0u;
  std::unique_ptr<Slot[]> slots;
  uint64_t block_bytes = 0;
  uint32_t size_class = 0, num_slots = 0, fresh = 0, in_use = 0, first_free = kNone,
           last_free = kNone;

  bool whole_segment() const { return !before && !after; }
};

// Answers whether a stream has reached a ticket. It remembers the answers, so that similar
// questions do not ask the device again.
class Reached {
 public:
  explicit Reached(DeviceStream& stream) : stream_(stream) {}
  bool operator()(uint64_t ticket) {
    if (ticket <= reached_) return true;
    if (ticket >= ahead_) return false;
    if (stream_.reached(ticket)) return reached_ = ticket, true;
    return ahead_ = ticket, false;
  }

 private:
  DeviceStream& stream_;
  uint64_t reached_ = 0, ahead_ = ~uint64_t{0};
};

class BlockHeap {
 public:
  struct Block {
    void* data = nullptr;  // null if nothing fits
    uint64_t bytes = 0;
    MemoryChunk* chunk = nullptr;
    uint32_t slot = 0;
  };

  // `oldest_first`: the small block that was freed first is handed out first. Otherwise it is the
  // one that was freed last, which is in the cache of the processor.
  explicit BlockHeap(bool oldest_first) : oldest_first_(oldest_first) {}
  ~BlockHeap();
  BlockHeap(const BlockHeap&) = delete;
  BlockHeap& operator=(const BlockHeap&) = delete;

  // Returns a block of at least `bytes`. If `reached` is given, the block was freed at a ticket
  // that the stream has reached. If this throws std::bad_alloc, nothing has changed.
  Block take(uint64_t bytes, Reached* reached) {
    return bytes > kLargestSmall ? take_large(bytes, reached)
                                 : take_small(class_of(bytes), reached);
  }
  // The same for a block whose size was freed recently; false if there is none.
  bool take_recent(uint64_t bytes, Block& block) {
    if (bytes > kLargestSmall) {
      const uint64_t rounded = round_up(bytes);
      auto*& kept = kept_[bin_of(rounded) % kept_.size()];
      if (!kept || kept->bytes != rounded) return false;
      kept->state = MemoryChunk::State::used;
      block = {kept->data, rounded, kept, 0};
      kept = nullptr;
      return true;
    }
    MemoryChunk* slab = slabs_[class_of(bytes)];
    if (!slab || slab->first_free == MemoryChunk::kNone) return false;
    block = pop(*slab);
    return true;
  }
  // Never throws. The block may come from any heap, which its chunk knows.
  static void put_back(const Block& block, uint64_t ticket) {
    MemoryChunk& chunk = *block.chunk;
    if (chunk.state == MemoryChunk::State::slab)
      chunk.heap->put_back_small(chunk, block.slot, ticket);
    else
      chunk.heap->put_back_large(chunk, ticket);
  }

  // Returns the size that a segment needs so that `take` succeeds.
  static uint64_t needed_for(uint64_t bytes) {
    return round_up(bytes > kLargestSmall ? bytes : slab_bytes(class_of(bytes)));
  }
  static constexpr uint64_t kMaxBlock = uint64_t{1} << 56;  // no device has more
  static uint64_t round_up(uint64_t bytes) { return (bytes + kLargeStep - 1) & ~(kLargeStep - 1); }

  // Merges adjacent free chunks and dissolves empty slabs, before the system is asked for more.
  void merge_free();
  // Adds a segment that the system provided. The node is made before, so that nothing can fail once
  // the memory has been allocated.
  static std::unique_ptr<MemoryChunk> make_node() { return std::make_unique<MemoryChunk>(); }
  void add_segment(std::unique_ptr<MemoryChunk> node, void* data, uint64_t bytes);
  // Removes the smallest segment that is completely free and whose ticket the stream has reached;
  // null if there is none.
  std::unique_ptr<MemoryChunk> remove_free_segment(Reached* reached);
  // Returns the latest ticket at which such a segment was freed.
  uint64_t ticket_of_free_segments() const;
  // Moves all free memory to `receiver`, as if it had been freed at `ticket`. Blocks that are still
  // in use have to be moved one by one with `adopt`.
  void move_free_to(BlockHeap& receiver, uint64_t ticket);
  void adopt(MemoryChunk& chunk) { chunk.heap = this; }

 private:
  // Sizes of small blocks: multiples of 64 bytes up to 256, then four sizes for each power of two.
  static constexpr uint64_t kLargestSmall = 4096, kSmallStep = 64, kLargeStep = 512;
  static constexpr uint32_t kNumClasses = 21;
  static uint32_t class_of(uint64_t bytes) {
    if (bytes <= 256) return static_cast<uint32_t>((bytes + kSmallStep - 1) / kSmallStep);  // 1..4
    const auto log =
        static_cast<uint32_t>(63 - std::countl_zero(bytes - 1));  // 2^log <= bytes-1 < 2^(log+1)
    return 5 + (log - 8) * 4 +
           static_cast<uint32_t>((bytes - 1 - (uint64_t{1} << log)) >> (log - 2));
  }
  static constexpr uint64_t class_bytes(uint32_t c) {
    if (c <= 4) return c * kSmallStep;
    const uint32_t log = 8 + (c - 5) / 4;
    return (uint64_t{1} << log) + ((c - 5) % 4 + 1) * (uint64_t{1} << (log - 2));
  }

  // A slab has sixteen blocks, but at least 16 KiB.
  static constexpr uint64_t slab_bytes(uint32_t c) {
    const uint64_t sixteen = class_bytes(c) * 16, least = 16 << 10;
    return sixteen < least ? least : sixteen;
  }

  // Bins of free chunks: eight for each power of two, from 2^9 bytes on.
  static constexpr uint32_t kNumBins = 8 * 48;
  static uint32_t bin_of(uint64_t bytes) {
    const auto log = static_cast<uint32_t>(63 - std::countl_zero(bytes));
    const uint32_t bin = (log - 9) * 8 + static_cast<uint32_t>(bytes >> (log - 3) & 7);
    return bin < kNumBins ? bin : kNumBins - 1;
  }

  Block pop(MemoryChunk& slab) {
    const uint32_t slot = slab.first_free;
    slab.first_free = slab.slots[slot].next;
    return hand_out(slab, slot);
  }
  Block hand_out(MemoryChunk& slab, uint32_t slot) {
    if (++slab.in_use == slab.num_slots) [[unlikely]]
      unlink(slabs_[slab.size_class], slab);
    return {slab.data + slot * slab.block_bytes, slab.block_bytes, &slab, slot};
  }
  Block take_small(uint32_t c, Reached* reached);
  Block take_large(uint64_t bytes, Reached* reached);
  MemoryChunk* best_fit(uint64_t bytes, Reached* reached);
  void put_back_small(MemoryChunk& slab, uint32_t slot, uint64_t ticket) {
    if (oldest_first_ && slab.first_free != MemoryChunk::kNone) {
      slab.slots[slot] = {ticket, MemoryChunk::kNone};
      slab.slots[slab.last_free].next = slot;
    } else {
      slab.slots[slot] = {ticket, slab.first_free};
      slab.first_free = slot;
    }
    slab.last_free = slot;  // used only if the oldest go first
    if (slab.in_use-- == slab.num_slots) [[unlikely]]
      link(slabs_[slab.size_class], slab);
    // One empty slab of each class is kept, so that a single block that is allocated and freed
    // repeatedly does not create and dissolve a slab each time.
    if (slab.in_use == 0 && (slab.previous || slab.next)) [[unlikely]]
      dissolve(slab);
  }
  void put_back_large(MemoryChunk& chunk, uint64_t ticket) {
    chunk.ticket = ticket > chunk.ticket ? ticket : chunk.ticket;
    chunk.state = MemoryChunk::State::kept;
    auto*& kept = kept_[bin_of(chunk.bytes) % kept_.size()];
    auto* displaced = kept;
    kept = &chunk;
    if (displaced) [[unlikely]]
      merge_into_bin(displaced);
  }
  void dissolve(MemoryChunk& slab);
  void merge_into_bin(MemoryChunk* chunk);
  MemoryChunk* absorb_next(MemoryChunk* chunk);

  static void link(MemoryChunk*& head, MemoryChunk& chunk);
  static void unlink(MemoryChunk*& head, MemoryChunk& chunk);
  void add_to_bin(MemoryChunk& chunk);
  void remove_from_bin(MemoryChunk& chunk);
  MemoryChunk* first_bin_from(uint32_t bin, uint32_t& found) const;
  template <class F>
  void each_free_segment(F&& visit) const;

  const bool oldest_first_;
  std::array<MemoryChunk*, kNumClasses> slabs_{};  // slabs with free blocks, by class
  std::array<MemoryChunk*, kNumBins> bins_{};
  std::array<uint64_t, kNumBins / 64> occupied_{};  // one bit for each bin
  // For each bin, the chunk that was freed last. It waits here undivided for the next request of
  // its size, so that a loop over a few sizes neither splits nor merges.
  std::array<MemoryChunk*, 64> kept_{};
  MemoryChunk* spare_ = nullptr;  // unused nodes for the next splits
};

}  // namespace tenon
