// The CUDA runtime's functions that the plugin calls, over the host's memory: devices, memory,
// copies, launches and errors; events.cpp has streams, events and graphs, and scheduler.h says when
// queued work runs. Whatever the real runtime leaves to chance is made to show: fresh and freed
// memory is all ones (as floating-point numbers: NaN), copies of pageable memory are as late as all
// others, and cudaFree waits for nothing. Settings: TENON_EMULATED_DEVICES (2),
// TENON_EMULATED_MEMORY (bytes a device has, 1 GiB), TENON_EMULATED_FAIL_AT=n: the n-th kernel of
// the process meets an illegal address. TENON_EMULATED_REFUSE=1: kernels are not taken.
// TENON_EMULATED_CAPABILITY=n is 90. TENON_EMULATED_ALLOCATION=n: cudaMalloc answers with the error
// n. TENON_EMULATED_PEERS=n: so does cudaDeviceEnablePeerAccess.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

#include "calls.h"
#include "counters.h"
#include "scheduler.h"
#include "symbols.h"

extern "C" {
__attribute__((visibility("default"))) tenon::emulated::CudaCounters tenon_emulated_cuda_counters{};
}

using namespace tenon::emulated;

namespace tenon::emulated {
void run_grid(dim3 grid, dim3 block, const Kernel& kernel, const std::function<void()>& thread);
}

namespace {

auto& counters = tenon_emulated_cuda_counters;

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

struct Block {
  uint64_t bytes;
  int device;  // -1: pinned memory of the host
};

auto& memory = *new std::map<const char*, Block>;  // of all devices, and pinned
auto& used = *new std::map<int, uint64_t>;
uint64_t started_kernels = 0;
thread_local bool has_context = false;
thread_local cudaError_t last_error = cudaSuccess;

int device_total() { return static_cast<int>(setting("TENON_EMULATED_DEVICES", 2)); }
uint64_t device_bytes() { return setting("TENON_EMULATED_MEMORY", uint64_t{1} << 30); }
const Block* block_of(const void* p, uint64_t bytes) {
  auto* c = static_cast<const char*>(p);
  auto it = memory.upper_bound(c);
  if (it == memory.begin()) return nullptr;
  --it;
  return c + bytes <= it->first + it->second.bytes ? &it->second : nullptr;
}
bool is_device_memory(const void* p, uint64_t bytes) {
  auto* block = block_of(p, bytes);
  return block && block->device >= 0;
}

cudaError_t allocate(void** p, size_t bytes, int device) {
  std::lock_guard guard(lock());
  start(current_device);
  if (lost) return answer(cudaErrorIllegalAddress);
  if (auto code = refused_as_unsafe(); code != cudaSuccess) return answer(code);
  if (device >= 0 && bytes > device_bytes() - used[device])
    return answer(cudaErrorMemoryAllocation);
  *p = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!*p) return answer(cudaErrorMemoryAllocation);
  std::memset(*p, 0xff, bytes);
  memory[static_cast<char*>(*p)] = {bytes, device};
  if (device >= 0) used[device] += bytes;
  return cudaSuccess;
}

cudaError_t give_back(void* p, bool pinned) {
  std::lock_guard guard(lock());
  if (!p) return cudaSuccess;
  if (auto code = refused_as_unsafe(); code != cudaSuccess) return answer(code);
  auto it = memory.find(static_cast<char*>(p));
  if (it == memory.end() || (it->second.device < 0) != pinned) return answer(cudaErrorInvalidValue);
  if (!pinned) used[it->second.device] -= it->second.bytes;
  std::memset(p, 0xff, it->second.bytes);
  memory.erase(it);
  std::free(p);
  return lost ? answer(cudaErrorIllegalAddress) : cudaSuccess;
}

bool fits(dim3 grid, dim3 block, const Kernel& kernel) {
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  return grid.x > 0 && grid.y > 0 && grid.z > 0 && threads > 0 && grid.x <= 0x7fffffffu &&
         grid.y <= 65535 && grid.z <= 65535 && block.x <= 1024 && block.y <= 1024 &&
         block.z <= 64 && threads <= kernel.most_threads;
}

}  // namespace

thread_local int tenon::emulated::current_device = 0;
cudaError_t tenon::emulated::answer(cudaError_t code) {
  if (code != cudaSuccess) last_error = code;
  return code;
}
void tenon::emulated::start(int device) {
  counters.contexts |= uint64_t{1} << device;
  has_context = true;
}
bool tenon::emulated::thread_has_context() { return has_context; }

cudaError_t tenon::emulated::launch(dim3 grid, dim3 block, size_t dynamic_bytes,
                                    cudaStream_t handle, const void* function,
                                    const BoundKernel& thread) {
  static const uint64_t fail_at = setting("TENON_EMULATED_FAIL_AT", 0);
  constexpr size_t most_shared = 48 << 10;
  return with_stream(handle, [&](Stream* stream) {
    if (stream->device != current_device) return cudaErrorInvalidResourceHandle;
    const Kernel& kernel = kernel_at(function);
    if (!fits(grid, block, kernel)) return cudaErrorInvalidConfiguration;
    if (kernel.shared_bytes + dynamic_bytes > most_shared) return cudaErrorInvalidValue;
    if (setting("TENON_EMULATED_REFUSE", 0)) {
      refused_by_capture(stream->capture, cudaSuccess);
      return cudaErrorLaunchOutOfResources;
    }
    ++counters.launches;
    std::vector<std::max_align_t> closure(thread.bytes / sizeof(std::max_align_t) + 1);
    std::memcpy(closure.data(), thread.closure, thread.bytes);
    return queue_task(stream, [=, &kernel, run = thread.run, closure = std::move(closure)] {
      if (++started_kernels == fail_at)
        lost = true;
      else
        run_grid(grid, block, kernel, [&] { run(closure.data()); });
    });
  });
}

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = device_total();
  return *count ? cudaSuccess : cudaErrorNoDevice;
}
cudaError_t cudaDriverGetVersion(int* version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaGetDevice(int* device) {
  ++counters.device_calls;
  return *device = current_device, cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  ++counters.device_calls;
  if (device < 0 || device >= device_total()) return answer(cudaErrorInvalidDevice);
  start(device);
  return current_device = device, cudaSuccess;
}
// For tests, which link no runtime: as the user's own code.
__attribute__((visibility("default"))) int tenon_emulated_get_device(int* device) {
  return *device = current_device, 0;
}
__attribute__((visibility("default"))) int tenon_emulated_set_device(int device) {
  return cudaSetDevice(device);
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) {
  switch (which) {
    case cudaDevAttrMultiProcessorCount:
      return *value = 2, cudaSuccess;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return *value = 2048, cudaSuccess;
    case cudaDevAttrL2CacheSize:
      return *value = 1 << 20, cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      return *value = static_cast<int>(setting("TENON_EMULATED_CAPABILITY", 90) / 10), cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      return *value = static_cast<int>(setting("TENON_EMULATED_CAPABILITY", 90) % 10), cudaSuccess;
    default:
      return answer(cudaErrorInvalidValue);
  }
}
#undef cudaGetDeviceProperties
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  *p = cudaDeviceProp{};
  std::snprintf(p->name, sizeof p->name, "emulated device %d", device);
  p->major = 9;
  p->totalGlobalMem = device_bytes();
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  std::lock_guard guard(lock());
  start(current_device);
  *total = device_bytes();
  *free = *total - used[current_device];
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** p, size_t bytes) {
  if (const uint64_t code = setting("TENON_EMULATED_ALLOCATION", 0))
    return answer(static_cast<cudaError_t>(code));
  return allocate(p, bytes, current_device);
}
cudaError_t cudaFree(void* p) { return give_back(p, false); }
cudaError_t cudaHostAlloc(void** p, size_t bytes, unsigned) {
  ++counters.host_allocations;
  return allocate(p, bytes, -1);
}
cudaError_t cudaFreeHost(void* p) { return give_back(p, true); }

cudaError_t cudaMemcpyAsync(void* dst, const void* src, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t handle) {
  return with_stream(handle, [&](Stream* stream) {
    const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (to_device != is_device_memory(dst, bytes) || from_device != is_device_memory(src, bytes))
      return cudaErrorInvalidValue;
    return queue_task(stream, [=] { std::memcpy(dst, src, bytes); });
  });
}
cudaError_t cudaMemcpyPeerAsync(void* dst, int dst_device, const void* src, int src_device,
                                size_t bytes, cudaStream_t handle) {
  return with_stream(handle, [&](Stream* stream) {
    auto *to = block_of(dst, bytes), *from = block_of(src, bytes);
    if (!to || !from || to->device != dst_device || from->device != src_device)
      return cudaErrorInvalidValue;
    return queue_task(stream, [=] { std::memcpy(dst, src, bytes); });
  });
}
cudaError_t cudaMemsetAsync(void* dst, int value, size_t bytes, cudaStream_t handle) {
  return with_stream(handle, [&](Stream* stream) {
    if (stream->device != current_device) return cudaErrorInvalidResourceHandle;
    if (bytes && !is_device_memory(dst, bytes)) return cudaErrorInvalidValue;
    return queue_task(stream, [=] { std::memset(dst, value, bytes); });
  });
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) { return *can = 1, cudaSuccess; }
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  if (const uint64_t code = setting("TENON_EMULATED_PEERS", 0))
    return answer(static_cast<cudaError_t>(code));
  return start(current_device), start(peer), cudaSuccess;
}

cudaError_t cudaGetLastError() {
  return std::exchange(last_error, lost ? cudaErrorIllegalAddress : cudaSuccess);
}
cudaError_t cudaPeekAtLastError() { return last_error; }
const char* cudaGetErrorName(cudaError_t code) {
  return code == cudaErrorIllegalAddress     ? "cudaErrorIllegalAddress"
         : code == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation"
         : code == cudaErrorInvalidValue     ? "cudaErrorInvalidValue"
                                             : "cudaError";
}
const char* cudaGetErrorString(cudaError_t code) {
  return code == cudaErrorIllegalAddress     ? "an illegal memory access was encountered"
         : code == cudaErrorMemoryAllocation ? "out of memory"
         : code == cudaErrorInvalidValue     ? "invalid argument"
                                             : "emulated error";
}

}  // extern "C"
