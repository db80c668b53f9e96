#include <algorithm>

#include <tenon/core/runtime/block_heap.h>

namespace tenon {

using State = MemoryChunk::State;

BlockHeap::~BlockHeap() {
  while (spare_) {
    auto* next = spare_->next;
    delete spare_;
    spare_ = next;
  }
}

// ---- lists ----

void BlockHeap::link(MemoryChunk*& head, MemoryChunk& chunk) {
  chunk.previous = nullptr;
  chunk.next = head;
  if (head) head->previous = &chunk;
  head = &chunk;
}

void BlockHeap::unlink(MemoryChunk*& head, MemoryChunk& chunk) {
  (chunk.previous ? chunk.previous->next : head) = chunk.next;
  if (chunk.next) chunk.next->previous = chunk.previous;
  chunk.previous = chunk.next = nullptr;
}

void BlockHeap::add_to_bin(MemoryChunk& chunk) {
  const uint32_t bin = bin_of(chunk.bytes);
  chunk.state = State::free;
  link(bins_[bin], chunk);
  occupied_[bin / 64] |= uint64_t{1} << (bin % 64);
}

void BlockHeap::remove_from_bin(MemoryChunk& chunk) {
  const uint32_t bin = bin_of(chunk.bytes);
  unlink(bins_[bin], chunk);
  if (!bins_[bin]) occupied_[bin / 64] &= ~(uint64_t{1} << (bin % 64));
}

// Returns the list of the first bin from `bin` on that is not empty.
MemoryChunk* BlockHeap::first_bin_from(uint32_t bin, uint32_t& found) const {
  for (uint32_t word = bin / 64; word < occupied_.size(); ++word) {
    const uint64_t bits =
        word == bin / 64 ? occupied_[word] & ~uint64_t{0} << (bin % 64) : occupied_[word];
    if (!bits) continue;
    found = word * 64 + static_cast<uint32_t>(std::countr_zero(bits));
    return bins_[found];
  }
  return nullptr;
}

// ---- large blocks ----

MemoryChunk* BlockHeap::best_fit(uint64_t bytes, Reached* reached) {
  uint32_t bin = bin_of(bytes);
  for (auto* list = first_bin_from(bin, bin); list;
       list = ++bin < kNumBins ? first_bin_from(bin, bin) : nullptr) {
    MemoryChunk* best = nullptr;
    for (auto* chunk = list; chunk; chunk = chunk->next) {
      if (chunk->bytes < bytes || (best && chunk->bytes >= best->bytes)) continue;
      if (reached && !(*reached)(chunk->ticket)) continue;
      best = chunk;
      if (best->bytes == bytes) break;
    }
    if (best) return best;
  }
  return nullptr;
}

BlockHeap::Block BlockHeap::take_large(uint64_t bytes, Reached* reached) {
  if (bytes > kMaxBlock) return {};
  bytes = round_up(bytes);
  auto*& kept = kept_[bin_of(bytes) % kept_.size()];
  if (kept && kept->bytes == bytes && (!reached || (*reached)(kept->ticket))) {
    auto* chunk = std::exchange(kept, nullptr);
    chunk->state = State::used;
    return {chunk->data, bytes, chunk};
  }
  auto* chunk = best_fit(bytes, reached);
  if (!chunk) return {};
  if (chunk->bytes > bytes) {
    auto* rest = spare_ ? std::exchange(spare_, spare_->next) : new MemoryChunk;
    remove_from_bin(*chunk);
    *rest = {};
    rest->data = chunk->data + bytes;
    rest->bytes = chunk->bytes - bytes;
    rest->ticket = chunk->ticket;
    rest->heap = this;
    rest->before = chunk;
    rest->after = chunk->after;
    if (rest->after) rest->after->before = rest;
    chunk->after = rest;
    chunk->bytes = bytes;
    add_to_bin(*rest);
  } else {
    remove_from_bin(*chunk);
  }
  chunk->state = State::used;
  return {chunk->data, bytes, chunk};
}

// Merges the chunk after a free one, which is free too, into it.
MemoryChunk* BlockHeap::absorb_next(MemoryChunk* chunk) {
  auto* gone = chunk->after;
  chunk->bytes += gone->bytes;
  chunk->ticket = std::max(chunk->ticket, gone->ticket);
  chunk->after = gone->after;
  if (chunk->after) chunk->after->before = chunk;
  gone->next = spare_;
  spare_ = gone;
  return chunk;
}

// `chunk` must not be in a list.
void BlockHeap::merge_into_bin(MemoryChunk* chunk) {
  if (chunk->after && chunk->after->state == State::free) {
    remove_from_bin(*chunk->after);
    absorb_next(chunk);
  }
  if (chunk->before && chunk->before->state == State::free) {
    remove_from_bin(*chunk->before);
    chunk = absorb_next(chunk->before);
  }
  add_to_bin(*chunk);
}

// ---- small blocks ----

BlockHeap::Block BlockHeap::take_small(uint32_t c, Reached* reached) {
  for (auto* slab = slabs_[c]; slab; slab = slab->next) {
    const uint32_t slot = slab->first_free;
    if (slot != MemoryChunk::kNone && (!reached || (*reached)(slab->slots[slot].ticket)))
      return pop(*slab);
    if (slab->fresh < slab->num_slots && (!reached || (*reached)(slab->ticket)))
      return hand_out(*slab, slab->fresh++);
  }
  const auto count = static_cast<uint32_t>(slab_bytes(c) / class_bytes(c));
  auto slots = std::make_unique_for_overwrite<MemoryChunk::Slot[]>(count);
  auto* slab = take_large(slab_bytes(c), reached).chunk;
  if (!slab) return {};
  slab->state = State::slab;
  slab->slots = std::move(slots);
  slab->block_bytes = class_bytes(c);
  slab->size_class = c;
  slab->num_slots = count;
  slab->fresh = slab->in_use = 0;
  slab->first_free = slab->last_free = MemoryChunk::kNone;
  link(slabs_[c], *slab);
  return hand_out(*slab, slab->fresh++);
}

void BlockHeap::dissolve(MemoryChunk& slab) {
  for (uint32_t i = 0; i < slab.fresh; ++i)
    slab.ticket = std::max(slab.ticket, slab.slots[i].ticket);
  unlink(slabs_[slab.size_class], slab);
  slab.slots.reset();
  merge_into_bin(&slab);
}

void BlockHeap::merge_free() {
  for (auto*& kept : kept_)
    if (kept) merge_into_bin(std::exchange(kept, nullptr));
  for (auto* slab : slabs_)
    for (MemoryChunk* next; slab; slab = next) {
      next = slab->next;
      if (slab->in_use == 0) dissolve(*slab);
    }
}

// ---- segments ----

void BlockHeap::add_segment(std::unique_ptr<MemoryChunk> node, void* data, uint64_t bytes) {
  node->data = static_cast<char*>(data);
  node->bytes = bytes;
  node->heap = this;
  add_to_bin(*node.release());
}

// Visits the smallest segment first. The visitor returns true to stop.
template <class F>
void BlockHeap::each_free_segment(F&& visit) const {
  uint32_t bin = 0;
  for (auto* list = first_bin_from(0, bin); list;
       list = ++bin < kNumBins ? first_bin_from(bin, bin) : nullptr)
    for (auto* chunk = list; chunk; chunk = chunk->next)
      if (chunk->whole_segment() && visit(*chunk)) return;
}

std::unique_ptr<MemoryChunk> BlockHeap::remove_free_segment(Reached* reached) {
  MemoryChunk* found = nullptr;
  each_free_segment([&](MemoryChunk& segment) {
    if (!reached || (*reached)(segment.ticket)) found = &segment;
    return found != nullptr;
  });
  if (found) remove_from_bin(*found);
  return std::unique_ptr<MemoryChunk>(found);
}

uint64_t BlockHeap::ticket_of_free_segments() const {
  uint64_t latest = 0;
  each_free_segment([&](MemoryChunk& segment) {
    latest = std::max(latest, segment.ticket);
    return false;
  });
  return latest;
}

void BlockHeap::move_free_to(BlockHeap& receiver, uint64_t ticket) {
  merge_free();
  for (auto*& list : slabs_)
    while (auto* slab = list) {
      unlink(list, *slab);
      for (uint32_t i = slab->first_free; i != MemoryChunk::kNone; i = slab->slots[i].next)
        slab->slots[i].ticket = ticket;
      slab->ticket = ticket;
      slab->heap = &receiver;
      link(receiver.slabs_[slab->size_class], *slab);
    }
  for (auto*& list : bins_)
    while (auto* chunk = list) {
      remove_from_bin(*chunk);
      chunk->ticket = ticket;
      chunk->heap = &receiver;
      receiver.add_to_bin(*chunk);
    }
}

}  // namespace tenon
