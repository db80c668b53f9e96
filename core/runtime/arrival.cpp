#include <mutex>

#include <tenon/core/error.h>
#include <tenon/core/runtime/arrival.h>
#include <tenon/core/runtime/context.h>

namespace tenon {

Ref<Storage> Allocator::allocate_apart(uint64_t bytes) {
  if (checked_ || !bytes || bytes > context_.max_bytes() || bytes > BlockHeap::kMaxBlock) return {};
  auto owner = Ref<Storage>::adopt(new Storage);
  owner->context = &context_;
  const auto block = take_apart(bytes);
  if (!block.data) return {};
  hold(*owner, block, bytes);
  if (context_.stream->failures.any()) context_.stream->failures.clear_poison(owner->data, bytes);
  return owner;
}

// Waits for no stream. Returns a block without data if the device has no room for it.
BlockHeap::Block Allocator::take_apart(uint64_t bytes) {
  for (;;) {
    {
      std::lock_guard lock(lock_);
      collect_pending();
      if (const auto block = find(bytes, true); block.data) return count(block), block;
      const uint64_t needed = BlockHeap::needed_for(bytes);
      const uint64_t most = max_reserved(needed) + kMostApart / 2;
      if (stats_.reserved + segment_bytes(needed) > most) return {};
      lends_apart_ = true;
    }
    try {
      ask_system(bytes, true);
    } catch (const OutOfMemoryError&) {
      return {};  // work in order may do with the memory that it has
    }
  }
}

uint64_t await_arrival(Storage& s, uint64_t ticket) {
  auto& device = *s.context;
  Stream& copies = device.copies();
  const uint64_t copied = ticket & ~kArriving;
  uint64_t now = 0;  // nothing has to be waited for
  if (!copies.reached(copied)) {
    device.stream->wait_for(copies, copied, s.data, s.bytes);
    now = device.stream->last();
  }
  // Another thread may have done the same meanwhile, or have written other values.
  return s.write_ticket.compare_exchange_strong(ticket, now, std::memory_order_acq_rel) ? now
                                                                                        : ticket;
}

void wait_for_values(Stream& reader, Storage& s, const void* data, uint64_t bytes) {
  const uint64_t ticket = s.write_ticket.load(std::memory_order_acquire);
  if (ticket & kArriving)
    reader.wait_for(s.context->copies(), ticket & ~kArriving, data, bytes);
  else
    reader.wait_for(*s.context->stream, ticket, data, bytes);
}

void note_copied(Storage& s, Stream& stream, uint64_t ticket) {
  const bool apart = &stream != s.context->stream.get();
  if (apart) s.add_use(stream, ticket);
  s.write_ticket.store(apart ? ticket | kArriving : ticket, std::memory_order_release);
}

void wait_for_arrival(Storage& s) {
  const uint64_t ticket = s.write_ticket.load(std::memory_order_acquire);
  if (ticket & kArriving) s.context->copies().wait_and_watch(ticket & ~kArriving);
}

bool has_arrived(Storage& s) {
  const uint64_t ticket = s.write_ticket.load(std::memory_order_acquire);
  return ticket & kArriving ? s.context->copies().reached(ticket & ~kArriving)
                            : s.context->stream->reached(ticket);
}

}  // namespace tenon
