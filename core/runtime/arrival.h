// Values that come to a device while it computes. Large copies to a device that computes on threads
// of the host run on a stream of their own (DeviceContext::copies), and only the work that reads
// their values waits for them.
#pragma once

#include <atomic>
#include <cstdint>

#include <tenon/core/storage.h>

namespace tenon {

// While values arrive, Storage::write_ticket is this bit and the ticket of the copy on that other
// stream. The copy is also among the uses of the storage, so that whoever changes or frees the
// memory waits for it.
inline constexpr uint64_t kArriving = uint64_t{1} << 63;

// Makes later work on the stream of the device wait for the copy. Returns the ticket of that.
uint64_t await_arrival(Storage& storage, uint64_t ticket);

// Returns the ticket of the last queued write on the stream of the device, for who is about to
// queue work there that reads the values: if they still arrive, that work waits for them.
inline uint64_t ticket_of(Storage& storage) {
  const uint64_t ticket = storage.write_ticket.load(std::memory_order_acquire);
  if (ticket & kArriving) [[unlikely]]
    return await_arrival(storage, ticket);
  return ticket;
}

// The same for work on another stream, which reads the values as `data`: it waits for the copy
// itself, and not for what else the device does.
void wait_for_values(Stream& reader, Storage& storage, const void* data, uint64_t bytes);

// Notes that the values of new memory are copied there by `stream`, which may be the stream of the
// device or that of its copies, with this ticket.
void note_copied(Storage& storage, Stream& stream, uint64_t ticket);

// Blocks the caller until values that arrive are there. Does nothing if they came otherwise.
void wait_for_arrival(Storage& storage);
// Returns whether the values are there, without waiting.
bool has_arrived(Storage& storage);

}  // namespace tenon
