#include <tenon/core/error.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/runtime/transfer.h>
#include <tenon/core/tensor_impl.h>

#include <cstring>

namespace tenon {

namespace {

uint64_t bytes_of(const TensorImpl& t) { return static_cast<uint64_t>(t.numel) * size_of(t.dtype); }

// Queues a copy between two devices that one plugin can do, and files both memories as in use. `fresh`: nothing queued uses the
// destination's memory.
void queue_copy(TensorImpl& src, TensorImpl& dst, bool fresh) {
  auto &from = *src.storage->context, &to = *dst.storage->context;
  // The device that has streams of its own does the copy; where both or none have, the destination.
  auto& by = to.caller_thread && !from.caller_thread ? from : to;
  auto& other = &by == &to ? from : to;
  auto& other_side = &by == &to ? src : dst;
  if (&by == &to)
    by.stream->wait_for(*from.stream, src.storage->ticket.load(std::memory_order_acquire));
  else if (!fresh)
    by.stream->wait_for(*to.stream, to.stream->last());
  // A plugin knows its own devices only; any other memory is host memory to it.
  const bool same_plugin = &from.backend == &to.backend;
  tn_copy copy{sizeof(tn_copy),
               dst.data(),
               src.data(),
               bytes_of(src),
               &by == &to || same_plugin ? to.handle : nullptr,
               &by == &from || same_plugin ? from.handle : nullptr};
  const uint64_t ticket = by.stream->copy({&by.backend.api(), by.handle, copy, &from.stream->failures, &to.stream->failures});
  if (&by != &other) {
    other_side.storage->add_use(*by.stream, ticket);
    if (&by == &from) {
      // The destination's own work must see the values.
      to.stream->wait_for(*by.stream, ticket, dst.data(), copy.bytes);
      dst.storage->ticket.store(to.stream->last(), std::memory_order_release);
    } else {
      dst.storage->ticket.store(ticket, std::memory_order_release);
    }
  }
  if (sync_mode()) by.stream->wait_and_throw(ticket);
}

// A lost device, or one whose work is recorded, takes part in no copy.
void require_both(const DeviceContext& from, const DeviceContext& to) {
  from.stream->require_device();
  to.stream->require_device();
  if (!from.stream->capturing() && !to.stream->capturing()) return;
  const std::string what = "a copy from " + from.device.str() + " to " + to.device.str() + " is not possible";
  from.stream->refuse_while_capturing(what.c_str());
  to.stream->refuse_while_capturing(what.c_str());
}

bool one_plugin_can(const DeviceContext& from, const DeviceContext& to) {
  return &from.backend == &to.backend || from.host_visible || to.host_visible;
}

Tensor tensor_on(Ref<Storage> storage, const Shape& shape, DType dtype, Device device) {
  return Tensor(Ref<TensorImpl>::adopt(new TensorImpl(dtype, device, shape, shape.contiguous_strides(), 0, std::move(storage))));
}

}  // namespace

Tensor allocate_tensor(const Shape& shape, DType dtype, Device device) {
  uint64_t elements = 1;
  for (auto d : shape) {
    if (d < 0) throw ShapeError("a tensor of shape " + shape.str() + " cannot be made: dimensions must not be negative");
    if (__builtin_mul_overflow(elements, static_cast<uint64_t>(d), &elements) || elements > (uint64_t{1} << 56))
      throw OutOfMemoryError("a tensor of shape " + shape.str() + " cannot be made: it has more elements than memory can hold");
  }
  return tensor_on(context_of(device).memory->allocate(elements * size_of(dtype)), shape, dtype, device);
}

namespace {
void copy_values(const Tensor& source, const Tensor& destination, bool fresh) {
  auto &src = impl_of(source), &dst = impl_of(destination);
  auto &from = *src.storage->context, &to = *dst.storage->context;
  require_both(from, to);
  if (src.numel) {
    if (one_plugin_can(from, to)) {
      queue_copy(src, dst, fresh);
    } else {
      Tensor on_host = copy_to_device(source, Device());
      queue_copy(impl_of(on_host), dst, fresh);
    }
  }
}
}  // namespace

void copy_between_devices(const Tensor& source, const Tensor& destination) {
  auto& storage = *impl_of(destination).storage;
  storage.wait_for_uses();
  copy_values(source, destination, false);
  storage.version.fetch_add(1, std::memory_order_relaxed);
}

Tensor copy_to_device(const Tensor& source, Device destination) {
  auto& src = impl_of(source);
  auto& to = context_of(destination);
  auto& from = *src.storage->context;
  require_both(from, to);
  // Where the source's stream writes into the destination's memory, that memory must not be in use there.
  const bool foreign_writer = to.caller_thread && !from.caller_thread;
  auto storage = foreign_writer ? to.memory->allocate_for_host(bytes_of(src)) : to.memory->allocate(bytes_of(src));
  Tensor result = tensor_on(std::move(storage), src.shape, src.dtype, destination);
  copy_values(source, result, true);
  return result;
}

Tensor tensor_from_host(const void* values, DType dtype, const Shape& shape, Device device) {
  auto& to = context_of(device);
  to.stream->require_device();
  to.stream->refuse_while_capturing("a copy from the host is not possible");
  if (to.host_visible) {
    auto storage = to.memory->allocate_for_host(static_cast<uint64_t>(shape.numel()) * size_of(dtype));
    if (storage->bytes) std::memcpy(storage->data, values, storage->bytes);
    return tensor_on(std::move(storage), shape, dtype, device);
  }
  Tensor result = allocate_tensor(shape, dtype, device);
  auto& dst = impl_of(result);
  const uint64_t bytes = bytes_of(dst);
  if (!bytes) return result;
  Ref<Storage> staging;
  if (to.pinned) {
    staging = to.pinned->allocate_for_host(bytes);
    std::memcpy(staging->data, values, bytes);
  }
  tn_copy copy{sizeof(tn_copy), dst.data(), staging ? staging->data : values, bytes, to.handle, nullptr};
  const uint64_t ticket = to.stream->copy({&to.backend.api(), to.handle, copy, nullptr, nullptr});
  dst.storage->ticket.store(ticket, std::memory_order_release);
  // Pinned memory outlives the call in its allocator; the caller's does not.
  if (staging)
    staging->add_use(*to.stream, ticket);
  else
    to.stream->wait(ticket);
  return result;
}

}  // namespace tenon
