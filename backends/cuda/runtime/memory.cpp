// Memory of the device, pinned memory of the host, and copies between them and other devices.
#include <iterator>
#include <string>

#include "runtime/check.h"
#include "runtime/device.h"
#include "runtime/runtime.h"

namespace tenon::cuda {

namespace {

// What cudaMalloc and cudaHostAlloc give at least, by CUDA's programming guide.
constexpr uint64_t kAlignment = 256;
// Both calls take long and wait for the device; cudaMalloc takes memory by pages of this size.
constexpr uint64_t kGranularity = uint64_t{2} << 20;

constexpr tn_memory_kind kDevice{sizeof(tn_memory_kind), "device", TN_MEMORY_DEVICE_LOCAL,
                                 kAlignment, kGranularity};
constexpr tn_memory_kind kPinned{sizeof(tn_memory_kind), "pinned",
                                 TN_MEMORY_HOST_VISIBLE | TN_MEMORY_PINNED, kAlignment,
                                 kGranularity};
constexpr const tn_memory_kind* kKinds[] = {&kDevice, &kPinned};

// Lets `device` read `peer`'s memory itself, if it can. Without that, CUDA copies between them
// through the host: where a device has too many peers, or no memory for one more, the copy goes on.
// Returns whether the answer will stay.
bool enable_peer(const tn_device* device, const tn_device* peer) {
  int can = 0;
  check(cudaDeviceCanAccessPeer(&can, device->ordinal, peer->ordinal), "cudaDeviceCanAccessPeer");
  if (!can) return true;
  try {
    check(cudaDeviceEnablePeerAccess(peer->ordinal, 0), "cudaDeviceEnablePeerAccess");
  } catch (const sdk::Error& e) {
    if (e.code() == TN_CODE_DEVICE_LOST) throw;
    return e.code() != TN_CODE_OUT_OF_MEMORY;
  }
  return true;
}

void copy_to_peer(tn_device* device, const tn_copy& c, cudaStream_t stream) {
  const tn_device* peer = c.dst_device == device ? c.src_device : c.dst_device;
  const uint64_t bit = peer->ordinal < 64 ? uint64_t{1} << peer->ordinal : 0;
  if (!(device->peers.load(std::memory_order_relaxed) & bit) && enable_peer(device, peer))
    device->peers.fetch_or(bit, std::memory_order_relaxed);
  check(cudaMemcpyPeerAsync(c.dst, c.dst_device->ordinal, c.src, c.src_device->ordinal, c.bytes,
                            stream),
        "cudaMemcpyPeerAsync");
}

}  // namespace

tn_error* memory_kinds(tn_device*, const tn_memory_kind* const** kinds, size_t* count) {
  *kinds = kKinds;
  *count = std::size(kKinds);
  return nullptr;
}

tn_error* memory_alloc(tn_device* device, uint32_t kind, uint64_t bytes, void** memory) {
  return sdk::guard([&] {
    if (kind >= std::size(kKinds))
      throw sdk::Error(TN_CODE_INVALID_ARGUMENT, sdk::text("there is no memory kind {}", kind));
    CurrentDevice current(device);
    device->started = true;
    void* p = nullptr;
    cudaError_t code =
        kind == 0 ? cudaMalloc(&p, bytes) : cudaHostAlloc(&p, bytes, cudaHostAllocPortable);
    if (code != cudaSuccess)
      throw_cuda_error(
          code, sdk::text("{} of {} bytes on device {}", kind == 0 ? "cudaMalloc" : "cudaHostAlloc",
                          bytes, device->ordinal));
    *memory = p;
  });
}

void memory_free(tn_device* device, uint32_t kind, void* memory, uint64_t) {
  // A lost device answers with its old error; there is nothing left to free then.
  tn_error* error = sdk::guard([&] {
    CurrentDevice current(device);
    if ((kind == 0 ? cudaFree(memory) : cudaFreeHost(memory)) != cudaSuccess) cudaGetLastError();
  });
  if (error) error->destroy(error);
}

tn_error* copy(tn_device* device, const tn_copy* c, tn_stream* stream) {
  return sdk::guard([&] {
    if (c->bytes == 0 || c->dst == c->src) return;
    refuse_while_capturing(stream, "a copy between memories");
    CurrentDevice current(device);
    if (c->dst_device && c->src_device && c->dst_device != c->src_device)
      return copy_to_peer(device, *c, stream->handle);
    auto direction = !c->src_device   ? cudaMemcpyHostToDevice
                     : !c->dst_device ? cudaMemcpyDeviceToHost
                                      : cudaMemcpyDeviceToDevice;
    check(cudaMemcpyAsync(c->dst, c->src, c->bytes, direction, stream->handle), "cudaMemcpyAsync");
  });
}

}  // namespace tenon::cuda
