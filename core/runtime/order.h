// Which work waits for which, so that several streams compute what the program says. A storage
// knows the ticket of its last write, which names the stream of that write, and lists in `uses`
// what streams other than that of its own context read and write. Code that queues work says here
// what the work reads and changes, before and after queueing it.
#pragma once

#include <atomic>
#include <cstdint>

#include <tenon/core/runtime/context.h>
#include <tenon/core/storage.h>

namespace tenon {

// ---- before the work is queued ----

// Makes work of `by`, a stream of any device, wait for the write with this ticket. Returns the
// ticket of the values as `by` knows them.
uint64_t await_write(DeviceContext& by, Storage& storage, uint64_t ticket);

// Work of `by`, a context of the storage's device, will read the values. If another stream still
// writes them, that work waits, and nothing else does. Returns their ticket.
inline uint64_t await_values(DeviceContext& by, Storage& storage) {
  const uint64_t ticket = storage.write_ticket.load(std::memory_order_acquire);
  if (DeviceStream::number_of(ticket) != by.number) [[unlikely]]
    return await_write(by, storage, ticket);
  return ticket;
}
// The same for a stream of any device, which reads them into `data` or where they lie.
void await_values(DeviceStream& reader, Storage& storage, const void* data, uint64_t bytes);

// Work of `by`, a context of the storage's device, will change the memory: it waits for all that
// still uses it. It may throw; then nothing that has to be waited for is forgotten.
void await_uses(DeviceContext& by, Storage& storage);

// ---- after it was queued on the stream of `by`, with its ticket ----

inline void note_read(DeviceContext& by, Storage& storage, uint64_t ticket) {
  if (storage.context != &by) [[unlikely]]
    storage.add_use(*by.stream, ticket);
}
// For a context of the storage's device.
inline void note_written(DeviceContext& by, Storage& storage, uint64_t ticket) {
  note_read(by, storage, ticket);
  storage.write_ticket.store(ticket, std::memory_order_release);
}

// ---- for the host ----

// The stream that made or makes the values with this ticket.
inline DeviceStream& writer_of(const Storage& storage, uint64_t ticket) {
  return storage.context->stream_of(ticket);
}
// Returns whether the values are there, without waiting.
inline bool has_values(const Storage& storage) {
  const uint64_t ticket = storage.write_ticket.load(std::memory_order_acquire);
  return writer_of(storage, ticket).reached(ticket);
}

}  // namespace tenon
