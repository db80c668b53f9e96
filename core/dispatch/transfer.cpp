#include <cstring>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/base/environment.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/dispatch/op.h>
#include <tenon/core/dispatch/transfer.h>
#include <tenon/core/error.h>
#include <tenon/core/extent.h>
#include <tenon/core/format.h>
#include <tenon/core/layout.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/runtime/host_work.h>
#include <tenon/core/runtime/order.h>
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

// Copies from and to a device run beside its other work from this size on. A smaller one takes no
// longer than waking the thread that would make it.
constexpr uint64_t kMinApart = uint64_t{64} << 10;

// Returns a pinned block for one copy of `device`; null if the copy is made without one.
Ref<Storage> block_for(DeviceContext& device, uint64_t bytes) {
  Allocator* const pinned = device.main.pinned.get();
  if (!pinned || !bytes || bytes > kMaxStaged || pinned->in_use() + bytes > kMaxInFlight) return {};
  try {
    return pinned->allocate_for_host(bytes);
  } catch (const Error&) {
    return {};  // no pinned memory is left; if the device is lost, the copy reports that
  }
}

// Returns the same for a copy between two devices. Only copies between host memory and a device
// with a queue of its own need a block.
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

// The two halves of a copy through a block. Each runs on the queue of `by`, a context of the device
// of its tensor.
uint64_t queue_into_block(DeviceContext& by, TensorImpl& src, Storage& block,
                          FailureLog& block_failures) {
  await_values(by, *src.storage);
  const tn_copy copy{sizeof(tn_copy), block.data, src.data(), bytes_of(src), nullptr, by.handle};
  const CopyTask::Asked asked{src.dtype, src.device};
  const uint64_t ticket =
      by.stream->copy({&by.backend.api(), by.handle, copy, &by.stream->failures, &block_failures,
                       guards_of(*src.storage), guards_of(block), &by, asked});
  note_read(by, *src.storage, ticket);
  block.add_use(*by.stream, ticket);
  return ticket;
}
void queue_from_block(DeviceContext& by, Storage& block, TensorImpl& dst,
                      const FailureLog* block_failures) {
  auto& stream = *by.stream;
  const tn_copy copy{sizeof(tn_copy), dst.data(), block.data, bytes_of(dst), by.handle, nullptr};
  const CopyTask::Asked asked{dst.dtype, {}, dst.device};
  const uint64_t ticket =
      stream.copy({&by.backend.api(), by.handle, copy, block_failures, &stream.failures,
                   guards_of(block), guards_of(*dst.storage), &by, asked});
  block.add_use(stream, ticket);
  note_written(by, *dst.storage, ticket);
  if (sync_mode()) stream.wait_for_call(ticket);
}

// What makes a copy: contexts of the device of the source and of that of the destination.
struct Sides {
  DeviceContext &from, &to;
};

// The stream of the device fills the block, and a stream of the host waits for that and copies
// the values out of it. The caller does neither.
void queue_copy_to_host(const Sides& sides, TensorImpl& src, TensorImpl& dst, Storage& block) {
  auto& to = *sides.to.stream;
  // A failure that keeps the values out of the block is logged where the second half looks for it
  // and passes it on to the destination.
  const uint64_t there = queue_into_block(sides.from, src, block, to.failures);
  to.wait_for(*sides.from.stream, there, block.data, bytes_of(src));
  queue_from_block(sides.to, block, dst, &to.failures);
}

// Waits for the values, because the queue of a device cannot wait for that of the host, and copies
// them into the block. The source is free when this returns. Returns false if the values were never
// computed.
bool queue_copy_to_device(const Sides& sides, TensorImpl& src, TensorImpl& dst, Storage& block) {
  auto& from = sides.from;
  const uint64_t bytes = bytes_of(src);
  await_values(*sides.to.stream, *src.storage, dst.data(), bytes);
  if (from.stream->failures.any() && from.stream->failures.poisoned(src.data(), bytes))
    return false;
  // The plugin makes this copy, because it uses all threads.
  const tn_copy copy{sizeof(tn_copy), block.data, src.data(), bytes, nullptr, from.handle};
  from.stream->require(from.backend.api().copy(from.handle, &copy, nullptr),
                       fmt::format("copy of {} bytes into pinned memory: ", bytes));
  queue_from_block(sides.to, block, dst, nullptr);
  return true;
}

// How the memory of the destination may be written: by the stream of `to`, after all that uses it;
// or also by another stream, because no queued work uses it.
enum class Destination { used, fresh };

// Queues a copy between two devices that one plugin can make, and notes that both storages are in
// use.
void queue_copy(const Sides& sides, TensorImpl& src, TensorImpl& dst, Destination target,
                Ref<Storage> block) {
  auto& [from, to] = sides;
  if (block && from.caller_thread && queue_copy_to_device(sides, src, dst, *block)) return;
  if (block && to.caller_thread) return queue_copy_to_host(sides, src, dst, *block);
  // The device with streams of its own makes the copy; if both or none have some, the destination
  // does.
  auto& by = to.caller_thread && !from.caller_thread ? from : to;
  DeviceStream& stream = *by.stream;
  await_values(stream, *src.storage, dst.data(), bytes_of(src));
  if (&by == &from && target == Destination::used) stream.wait_for(*to.stream, to.stream->last());
  // A plugin knows only its own devices; other memory is host memory to it.
  const bool same_plugin = &from.backend == &to.backend;
  tn_copy copy{sizeof(tn_copy),
               dst.data(),
               src.data(),
               bytes_of(src),
               &by == &to || same_plugin ? to.handle : nullptr,
               &by == &from || same_plugin ? from.handle : nullptr};
  const CopyTask::Asked asked{src.dtype, src.device, dst.device};
  const uint64_t ticket =
      stream.copy({&by.backend.api(), by.handle, copy, &from.stream->failures, &to.stream->failures,
                   guards_of(*src.storage), guards_of(*dst.storage), &by, asked});
  note_read(by, *src.storage, ticket);
  if (&by == &to) {
    note_written(to, *dst.storage, ticket);
  } else {
    dst.storage->add_use(stream, ticket);
    // Work of the destination must see the values.
    to.stream->wait_for(stream, ticket, dst.data(), copy.bytes);
    note_written(to, *dst.storage, to.stream->last());
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
  const uint64_t ticket = source.storage->write_ticket.load(std::memory_order_acquire);
  writer_of(*source.storage, ticket).tell_of(ticket);
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
  return tensor_on(working_context(device).memory->allocate(elements * size_of(dtype)), shape,
                   dtype, device);
}

namespace {
void copy_values(const Sides& sides, const Tensor& source, const Tensor& destination,
                 Destination target, Ref<Storage> block) {
  auto &src = impl_of(source), &dst = impl_of(destination);
  if (!src.numel) return;
  if (can_copy_directly(sides.from, sides.to))
    return queue_copy(sides, src, dst, target, std::move(block));
  Tensor on_host = copy_to_device(source, Device());
  const Sides second{working_context(Device()), sides.to};
  queue_copy(second, impl_of(on_host), dst, target,
             block_between(second.from, second.to, bytes_of(src)));
}
void queue_copy_between(const Tensor& source, const Tensor& destination) {
  auto& src = impl_of(source);
  auto& dst = impl_of(destination);
  auto &from = working_context(src.device), &to = working_context(dst.device);
  require_both(from, to);
  tell_of(src);
  const InPlaceChange change(*dst.storage, to);
  copy_values({from, to}, source, destination, Destination::used,
              block_between(from, to, bytes_of(src)));
}

Tensor queue_copy_to(const Tensor& source, Device destination) {
  auto& src = impl_of(source);
  auto &from = working_context(src.device), &to = working_context(destination);
  require_both(from, to);
  tell_of(src);
  auto block = block_between(from, to, bytes_of(src));
  // If the stream of the source writes into the memory of the destination, no work of the
  // destination may still use that memory.
  const bool foreign_writer = to.caller_thread && !from.caller_thread && !block;
  const bool large = bytes_of(src) >= kMinApart;
  Ref<Storage> storage;
  if (large && &to == &to.main && !foreign_writer)
    storage = to.memory->allocate_apart(bytes_of(src));
  DeviceContext& writer = storage ? to.extra(Extra::copies) : to;
  // What a device with streams of its own copies to the host waits for the values alone.
  const bool reads = to.caller_thread && !from.caller_thread;
  DeviceContext& reader = large && reads && &from == &from.main && !check_settings().on
                              ? from.extra(Extra::copies)
                              : from;
  if (!storage)
    storage = foreign_writer ? to.memory->allocate_for_host(bytes_of(src))
                             : to.memory->allocate(bytes_of(src));
  Tensor result = tensor_on(std::move(storage), src.shape, src.dtype, destination);
  copy_values({reader, writer}, source, result, Destination::fresh, std::move(block));
  // The bytes keep the order that they have in the source.
  if (!src.contiguous || moves_channels(src.format))
    return make_view(result, src.shape, src.strides, 0);
  return result;
}

// A program makes the same copy again.
Tensor record_copy_to(recording::Listener& recorder, const Tensor& source, Device destination) {
  const auto again = [destination](std::span<const Tensor> reads, std::span<const Tensor>,
                                   std::vector<Tensor>& made) {
    const Tensor copy = queue_copy_to(reads[0], destination);
    made.push_back(tensor_on(impl_of(copy).storage, copy.shape(), copy.dtype(), destination));
  };
  const Tensor copy =
      recorder.work({.name = "copy", .reads = {source}, .changes = {}, .again = again})[0];
  auto& src = impl_of(source);
  return make_view(copy, src.shape, src.strides, 0);
}

}  // namespace

Tensor copy_to_device(const Tensor& source, Device destination) {
  if (auto* recorder = recording::here()) [[unlikely]]
    return record_copy_to(*recorder, source, destination);
  return queue_copy_to(source, destination);
}

void copy_between_devices(const Tensor& source, const Tensor& destination) {
  auto* const recorder = recording::here();
  if (!recorder) [[likely]]
    return queue_copy_between(source, destination);
  const auto again = [](std::span<const Tensor> reads, std::span<const Tensor> changes,
                        std::vector<Tensor>&) { queue_copy_between(reads[0], changes[0]); };
  recorder->work({.name = "copy", .reads = {source}, .changes = {destination}, .again = again});
}

void read_to_host(const Tensor& source, void* destination) {
  recording::reads("a value");
  auto& src = impl_of(source);
  auto& from = working_context(src.device);
  const uint64_t bytes = bytes_of(src);
  tell_of(src);
  if (!from.host_visible) require_both(from, context_of(Device()));
  // The caller waits itself, because passing the work to the worker of the host and back would take
  // longer than a small copy.
  if (auto block = from.host_visible ? Ref<Storage>() : block_for(from, bytes)) {
    auto& stream = *from.stream;
    const uint64_t there = queue_into_block(from, src, *block, stream.failures);
    stream.wait_for_value(there, block->data, bytes);
    std::memcpy(destination, block->data, bytes);
    return;
  }
  Tensor here = from.host_visible ? source : copy_to_device(source, Device());
  here.wait();
  if (bytes) std::memcpy(destination, impl_of(here).data(), bytes);
}

namespace {
Tensor new_from_host(const void* values, DType dtype, const Shape& shape, Device device) {
  recording::refuse("a tensor is made of values of the host");
  auto& to = working_context(device);
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
    queue_from_block(to, *block, dst, nullptr);
    return result;
  }
  // The memory of the caller is valid only during the call.
  const tn_copy copy{sizeof(tn_copy), dst.data(), values, bytes, to.handle, nullptr};
  const CopyTask::Asked asked{dtype, {}, device};
  const uint64_t ticket = to.stream->copy({&to.backend.api(), to.handle, copy, nullptr, nullptr,
                                           nullptr, guards_of(*dst.storage), &to, asked});
  note_written(to, *dst.storage, ticket);
  to.stream->wait_and_watch(ticket);
  return result;
}

// A program makes the same tensor again, of a copy of the values.
Tensor record_from_host(recording::Listener& recorder, const void* values, DType dtype,
                        const Shape& shape, Device device) {
  const uint64_t bytes = static_cast<uint64_t>(shape.numel()) * size_of(dtype);
  auto content = std::make_shared<const std::string>(static_cast<const char*>(values), bytes);
  const auto again = [=](std::span<const Tensor>, std::span<const Tensor>,
                         std::vector<Tensor>& made) {
    made.push_back(new_from_host(content->data(), dtype, shape, device));
  };
  return recorder.work({.name = "values of the host",
                        .reads = {},
                        .changes = {},
                        .again = again,
                        .content = content,
                        .queues = false})[0];
}
}  // namespace

Tensor tensor_from_host(const void* values, DType dtype, const Shape& shape, Device device) {
  constexpr int64_t kMaxRecorded = 1 << 20;  // elements of which a recording keeps a copy
  if (auto* recorder = recording::here(); recorder && shape.numel() <= kMaxRecorded) [[unlikely]]
    return record_from_host(*recorder, values, dtype, shape, device);
  return new_from_host(values, dtype, shape, device);
}

bool can_swap_values(const Tensor& target, const Tensor& values) {
  const TensorImpl &t = impl_of(target), &v = impl_of(values);
  if (!t.storage.unique() || !v.storage.unique() || recording::any()) return false;
  if (t.dtype != v.dtype || !(t.shape == v.shape) || t.device != v.device || !t.contiguous ||
      !v.contiguous || t.device.type() != "cpu")
    return false;
  const auto is_plain = [](const Storage& s) {
    return s.bytes > 0 && !s.adopted() && !s.exported.load(std::memory_order_relaxed);
  };
  if (!is_plain(*t.storage) || !is_plain(*v.storage)) return false;
  // Memory of a stream graph stays in it, and replicas on other devices know their primary's.
  return t.storage->allocator == v.storage->allocator && !(t.autograd && t.autograd->replicas);
}

void swap_values(const Tensor& target, const Tensor& values) noexcept {
  TensorImpl &t = impl_of(target), &v = impl_of(values);
  const uint64_t version = t.storage->version.load(std::memory_order_relaxed);
  v.storage->version.store(version + 1, std::memory_order_release);
  std::swap(t.storage, v.storage);
  std::swap(t.offset, v.offset);
}

}  // namespace tenon
