#include <cstring>

#include <fmt/core.h>

#include <tenon/core/base/recording.h>
#include <tenon/core/dispatch/op.h>
#include <tenon/core/dispatch/transfer.h>
#include <tenon/core/error.h>
#include <tenon/core/extent.h>
#include <tenon/core/format.h>
#include <tenon/core/layout.h>
#include <tenon/core/runtime/arrival.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

namespace {

uint64_t bytes_of(const TensorImpl& t) { return static_cast<uint64_t>(t.numel) * size_of(t.dtype); }

// Devices with queues of their own copy asynchronously only from and to pinned host memory. With
// other memory, the caller waits until the queue has reached the copy. Therefore copies of up to
// kMaxStaged bytes go through a pinned block. Larger copies do not, nor do copies for which more
// than kMaxInFlight bytes would be in use: pinned pages are taken from the whole machine and kept,
// such a copy takes milliseconds anyway, and the waiting limits how much a loop can have in flight.
constexpr uint64_t kMaxStaged = uint64_t{64} << 20;
constexpr uint64_t kMaxInFlight = 4 * kMaxStaged;

// Copies to a device that computes on threads of the host run beside its other work from this size
// on. A smaller one takes no longer than waking the thread that would make it.
constexpr uint64_t kLeastApart = uint64_t{64} << 10;

// Returns a pinned block for one copy of `device`; null if the copy is made without one.
Ref<Storage> block_for(DeviceContext& device, uint64_t bytes) {
  if (!device.pinned || !bytes || bytes > kMaxStaged ||
      device.pinned->in_use() + bytes > kMaxInFlight)
    return {};
  try {
    return device.pinned->allocate_for_host(bytes);
  } catch (const Error&) {
    return {};  // no pinned memory is left; if the device is lost, the copy reports that
  }
}

// The same for a copy between two devices. Only copies between host memory and a device with a
// queue of its own need a block.
Ref<Storage> block_between(DeviceContext& from, DeviceContext& to, uint64_t bytes) {
  if (&from.backend == &to.backend || from.caller_thread == to.caller_thread) return {};
  return (from.caller_thread ? from : to).host_visible
             ? block_for(from.caller_thread ? to : from, bytes)
             : Ref<Storage>();
}

// In checked mode, what guards the memory of a storage.
checked::Memory* guards_of(const Storage& s) {
  return s.allocator ? s.allocator->checked() : nullptr;
}

// The two halves of a copy through a block. Each runs on the queue of the device of its tensor.
uint64_t queue_into_block(TensorImpl& src, Storage& block, FailureLog& block_failures) {
  auto& by = *src.storage->context;
  const tn_copy copy{sizeof(tn_copy), block.data, src.data(), bytes_of(src), nullptr, by.handle};
  const uint64_t ticket =
      by.stream->copy({&by.backend.api(), by.handle, copy, &by.stream->failures, &block_failures,
                       guards_of(*src.storage), guards_of(block), by.device});
  block.add_use(*by.stream, ticket);
  return ticket;
}
// `stream` is that of the device, or that of its copies.
void queue_from_block(Storage& block, TensorImpl& dst, const FailureLog* block_failures,
                      Stream& stream) {
  auto& by = *dst.storage->context;
  const tn_copy copy{sizeof(tn_copy), dst.data(), block.data, bytes_of(dst), by.handle, nullptr};
  const uint64_t ticket = stream.copy(
      {&by.backend.api(), by.handle, copy, block_failures, &by.stream->failures, guards_of(block),
       guards_of(*dst.storage), by.device, 0, &stream != by.stream.get()});
  block.add_use(stream, ticket);
  note_copied(*dst.storage, stream, ticket);
  if (sync_mode()) stream.wait_for_call(ticket);
}

// The stream of the device fills the block, and a stream of the host waits for that and copies
// the values out of it. The caller does neither.
void queue_copy_to_host(TensorImpl& src, TensorImpl& dst, Storage& block, Stream& to) {
  // A failure that keeps the values out of the block is logged where the second half looks for it
  // and passes it on to the destination.
  const uint64_t there = queue_into_block(src, block, to.failures);
  to.wait_for(*src.storage->context->stream, there, block.data, bytes_of(src));
  queue_from_block(block, dst, &to.failures, to);
}

// Waits for the values, because the queue of a device cannot wait for that of the host, and copies
// them into the block. The source is free when this returns. Returns false if the values were never
// computed.
bool queue_copy_to_device(TensorImpl& src, TensorImpl& dst, Storage& block) {
  auto& from = *src.storage->context;
  const uint64_t bytes = bytes_of(src);
  auto& to = *dst.storage->context->stream;
  wait_for_values(to, *src.storage, dst.data(), bytes);
  if (from.stream->failures.any() && from.stream->failures.poisoned(src.data(), bytes))
    return false;
  // The plugin makes this copy, because it uses all threads.
  const tn_copy copy{sizeof(tn_copy), block.data, src.data(), bytes, nullptr, from.handle};
  from.stream->require(from.backend.api().copy(from.handle, &copy, nullptr),
                       fmt::format("copy of {} bytes into pinned memory: ", bytes));
  queue_from_block(block, dst, nullptr, to);
  return true;
}

// How the memory of the destination may be written: by its stream, after all that uses it; also by
// another stream, because no queued work uses it; or by the stream of its copies, for the same
// reason.
enum class Destination { used, fresh, apart };

// Queues a copy between two devices that one plugin can make, and notes that both storages are in
// use.
void queue_copy(TensorImpl& src, TensorImpl& dst, Destination target, Ref<Storage> block) {
  auto &from = *src.storage->context, &to = *dst.storage->context;
  if (block && from.caller_thread && queue_copy_to_device(src, dst, *block)) return;
  Stream& writer = target == Destination::apart ? to.copies() : *to.stream;
  if (block && to.caller_thread) return queue_copy_to_host(src, dst, *block, writer);
  // The device with streams of its own makes the copy; if both or none have some, the destination
  // does.
  auto& by = to.caller_thread && !from.caller_thread ? from : to;
  Stream& stream = &by == &to ? writer : *from.stream;
  auto& other = &by == &to ? from : to;
  auto& other_side = &by == &to ? src : dst;
  if (&by == &to)
    wait_for_values(stream, *src.storage, dst.data(), bytes_of(src));
  else if (target == Destination::used)
    stream.wait_for(*to.stream, to.stream->last());
  // A plugin knows only its own devices; other memory is host memory to it.
  const bool same_plugin = &from.backend == &to.backend;
  tn_copy copy{sizeof(tn_copy),
               dst.data(),
               src.data(),
               bytes_of(src),
               &by == &to || same_plugin ? to.handle : nullptr,
               &by == &from || same_plugin ? from.handle : nullptr};
  const uint64_t ticket =
      stream.copy({&by.backend.api(), by.handle, copy, &from.stream->failures, &to.stream->failures,
                   guards_of(*src.storage), guards_of(*dst.storage), by.device, 0,
                   target == Destination::apart});
  if (&by != &other) {
    other_side.storage->add_use(stream, ticket);
    if (&by == &from) {
      // Work of the destination must see the values.
      to.stream->wait_for(stream, ticket, dst.data(), copy.bytes);
      dst.storage->write_ticket.store(to.stream->last(), std::memory_order_release);
    } else {
      note_copied(*dst.storage, stream, ticket);
    }
  }
  if (sync_mode()) stream.wait_for_call(ticket);
}

// A lost device, or one whose work is being captured, cannot take part in a copy.
void require_both(const DeviceContext& from, const DeviceContext& to) {
  recording::refuse("values are copied between devices");
  from.stream->require_device();
  to.stream->require_device();
  if (!from.stream->capturing() && !to.stream->capturing()) return;
  const std::string what =
      fmt::format("a copy from {} to {} is not possible", from.device, to.device);
  from.stream->refuse_while_capturing(what.c_str());
  to.stream->refuse_while_capturing(what.c_str());
}

// Work of the copy is newer than a failure that affected its source.
void tell_of(const TensorImpl& source) {
  source.storage->context->stream->tell_of(
      source.storage->write_ticket.load(std::memory_order_acquire));
}

bool can_copy_directly(const DeviceContext& from, const DeviceContext& to) {
  return &from.backend == &to.backend || from.host_visible || to.host_visible;
}

Tensor tensor_on(Ref<Storage> storage, const Shape& shape, DType dtype, Device device) {
  return Tensor(Ref<TensorImpl>::adopt(
      new TensorImpl(dtype, device, shape, shape.numel(), std::move(storage))));
}

}  // namespace

Tensor make_view(const Tensor& base, const Shape& shape, const Strides& strides, int64_t offset) {
  auto& b = impl_of(base);
  return Tensor(Ref<TensorImpl>::adopt(
      new TensorImpl(b.dtype, b.device, shape, strides, b.offset + offset, b.storage)));
}

Tensor span_of(const Tensor& x) {
  auto& t = impl_of(x);
  int64_t last = 0;
  for (size_t i = 0; i < t.shape.size(); ++i) last += (t.shape[i] - 1) * t.strides[i];
  return make_view(x, {last + 1}, {1}, 0);
}

Tensor allocate_tensor(const Shape& shape, DType dtype, Device device) {
  require_addressable("a tensor cannot be made", shape);
  const auto elements = static_cast<uint64_t>(shape.numel());
  return tensor_on(context_of(device).memory->allocate(elements * size_of(dtype)), shape, dtype,
                   device);
}

namespace {
void copy_values(const Tensor& source, const Tensor& destination, Destination target,
                 Ref<Storage> block) {
  auto &src = impl_of(source), &dst = impl_of(destination);
  auto &from = *src.storage->context, &to = *dst.storage->context;
  if (!src.numel) return;
  if (can_copy_directly(from, to)) return queue_copy(src, dst, target, std::move(block));
  Tensor on_host = copy_to_device(source, Device());
  auto& host = *impl_of(on_host).storage->context;
  queue_copy(impl_of(on_host), dst, target, block_between(host, to, bytes_of(src)));
}
}  // namespace

void copy_between_devices(const Tensor& source, const Tensor& destination) {
  auto& src = impl_of(source);
  auto& storage = *impl_of(destination).storage;
  auto &from = *src.storage->context, &to = *storage.context;
  require_both(from, to);
  tell_of(src);
  const InPlaceChange change(storage);
  copy_values(source, destination, Destination::used, block_between(from, to, bytes_of(src)));
}

Tensor copy_to_device(const Tensor& source, Device destination) {
  auto& src = impl_of(source);
  auto& to = context_of(destination);
  auto& from = *src.storage->context;
  require_both(from, to);
  tell_of(src);
  auto block = block_between(from, to, bytes_of(src));
  // If the stream of the source writes into the memory of the destination, no work of the
  // destination may still use that memory.
  const bool foreign_writer = to.caller_thread && !from.caller_thread && !block;
  Ref<Storage> storage;
  if (to.caller_thread && !foreign_writer && bytes_of(src) >= kLeastApart)
    storage = to.memory->allocate_apart(bytes_of(src));
  const Destination target = storage ? Destination::apart : Destination::fresh;
  if (!storage)
    storage = foreign_writer ? to.memory->allocate_for_host(bytes_of(src))
                             : to.memory->allocate(bytes_of(src));
  Tensor result = tensor_on(std::move(storage), src.shape, src.dtype, destination);
  copy_values(source, result, target, std::move(block));
  // The bytes are in the order of the source, whatever it is.
  if (!src.contiguous || moves_channels(src.format))
    return make_view(result, src.shape, src.strides, 0);
  return result;
}

void read_to_host(const Tensor& source, void* destination) {
  recording::reads("a value");
  auto& src = impl_of(source);
  auto& from = *src.storage->context;
  const uint64_t bytes = bytes_of(src);
  tell_of(src);
  if (!from.host_visible) require_both(from, context_of(Device()));
  // The caller waits itself, because passing the work to the worker of the host and back would take
  // longer than a small copy.
  if (auto block = from.host_visible ? Ref<Storage>() : block_for(from, bytes)) {
    auto& stream = *from.stream;
    stream.wait_for_value(queue_into_block(src, *block, stream.failures), block->data, bytes);
    std::memcpy(destination, block->data, bytes);
    return;
  }
  Tensor here = from.host_visible ? source : copy_to_device(source, Device());
  here.wait();
  if (bytes) std::memcpy(destination, impl_of(here).data(), bytes);
}

Tensor tensor_from_host(const void* values, DType dtype, const Shape& shape, Device device) {
  recording::refuse("a tensor is made of values of the host");
  auto& to = context_of(device);
  to.stream->require_device();
  to.stream->refuse_while_capturing("a copy from the host is not possible");
  if (to.host_visible) {
    auto storage =
        to.memory->allocate_for_host(static_cast<uint64_t>(shape.numel()) * size_of(dtype));
    if (storage->bytes) std::memcpy(storage->data, values, storage->bytes);
    return tensor_on(std::move(storage), shape, dtype, device);
  }
  Tensor result = allocate_tensor(shape, dtype, device);
  auto& dst = impl_of(result);
  const uint64_t bytes = bytes_of(dst);
  if (!bytes) return result;
  if (auto block = block_for(to, bytes)) {
    std::memcpy(block->data, values, bytes);
    queue_from_block(*block, dst, nullptr, *to.stream);
    return result;
  }
  // The memory of the caller is valid only during the call.
  const tn_copy copy{sizeof(tn_copy), dst.data(), values, bytes, to.handle, nullptr};
  const uint64_t ticket = to.stream->copy({&to.backend.api(), to.handle, copy, nullptr, nullptr,
                                           nullptr, guards_of(*dst.storage), to.device});
  dst.storage->write_ticket.store(ticket, std::memory_order_release);
  to.stream->wait_and_watch(ticket);
  return result;
}

bool host_has_room(uint64_t count, uint64_t element_bytes) {
  return count <= context_of(Device()).max_bytes() / element_bytes;
}

void refuse_host_room(uint64_t count, uint64_t element_bytes, const std::string& what) {
  uint64_t bytes;
  if (__builtin_mul_overflow(count, element_bytes, &bytes)) bytes = ~uint64_t{0};
  context_of(Device()).refuse_allocation(bytes, what);
}

}  // namespace tenon
