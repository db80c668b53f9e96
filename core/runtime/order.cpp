#include <tenon/core/runtime/order.h>

namespace tenon {

uint64_t await_write(DeviceContext& by, Storage& s, uint64_t ticket) {
  DeviceStream& writer = writer_of(s, ticket);
  if (!ticket || &writer == by.stream.get()) return ticket;
  // The wait has a ticket of its own, which others may wait for.
  const uint64_t now = by.stream->take_over(writer, ticket, s.data, s.bytes);
  if (s.context != &by) return ticket;
  // Another thread may have done the same meanwhile, or have written other values.
  return s.write_ticket.compare_exchange_strong(ticket, now, std::memory_order_acq_rel) ? now
                                                                                        : ticket;
}

void await_values(DeviceStream& reader, Storage& s, const void* data, uint64_t bytes) {
  const uint64_t ticket = s.write_ticket.load(std::memory_order_acquire);
  reader.wait_for(writer_of(s, ticket), ticket, data, bytes);
}

void await_uses(DeviceContext& by, Storage& s) {
  if (s.context == &by) return s.wait_for_uses();
  if (!s.allocator) return;
  // What the stream of its own context does with it is not listed, so all of that is waited for.
  by.stream->wait_for(*s.context->stream, s.context->stream->last());
  for (auto& use : s.allocator->uses(s)) by.stream->wait_for(*use.stream, use.ticket);
  await_values(by, s);
}

InPlaceChange::InPlaceChange(Storage& storage, DeviceContext& by) : storage_(&storage) {
  await_uses(by, storage);
}

}  // namespace tenon
