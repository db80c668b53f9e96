// The CUDA runtime's functions that the plugin calls, over the host's memory. A stream's work is done when it is queued, or kept
// while the stream is captured. Settings: TENON_EMULATED_DEVICES (2), TENON_EMULATED_MEMORY (bytes a device has, 1 GiB),
// TENON_EMULATED_FAIL_AT=n: the n-th kernel of the process meets an illegal address. TENON_EMULATED_REFUSE=1: kernels are not
// taken.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

#include "stream.h"

namespace tenon::emulated {
void run_grid(dim3 grid, dim3 block, const std::function<void()>& thread);
}

using Task = std::function<void()>;

struct CUevent_st {};
struct CUgraph_st {
  std::vector<Task> tasks;
};
struct CUgraphExec_st {
  std::vector<Task> tasks;
};

namespace {

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

struct Block {
  uint64_t bytes;
  int device;
};

// One lock over everything: the emulated devices take turns.
std::recursive_mutex mutex;
std::map<const char*, Block> memory;  // of all devices
std::map<int, uint64_t> used;
bool lost = false;
uint64_t launches = 0;
thread_local int current_device = 0;

int device_total() { return static_cast<int>(setting("TENON_EMULATED_DEVICES", 2)); }

bool is_device_memory(const void* p, uint64_t bytes) {
  auto* c = static_cast<const char*>(p);
  auto it = memory.upper_bound(c);
  if (it == memory.begin()) return false;
  --it;
  return c + bytes <= it->first + it->second.bytes;
}

// The plugin does nothing with a stream that captures but run kernels. Anything else spoils the recording.
cudaError_t state_of(cudaStream_t stream) {
  std::lock_guard lock(mutex);
  if (lost) return cudaErrorIllegalAddress;
  if (!stream || !stream->capturing) return cudaSuccess;
  stream->invalid = true;
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t queue(cudaStream_t stream, Task task) {
  std::lock_guard lock(mutex);
  if (lost) return cudaErrorIllegalAddress;
  if (stream && stream->capturing)
    stream->tasks.push_back(std::move(task));
  else
    task();
  return cudaSuccess;
}

}  // namespace

cudaError_t tenon::emulated::launch(dim3 grid, dim3 block, cudaStream_t stream, std::function<void()> thread) {
  static const uint64_t fail_at = setting("TENON_EMULATED_FAIL_AT", 0);
  if (block.x * block.y * block.z > 1024 || grid.y > 65535 || grid.z > 65535) return cudaErrorInvalidConfiguration;
  if (setting("TENON_EMULATED_REFUSE", 0)) {
    if (stream && stream->capturing) stream->invalid = true;
    return cudaErrorLaunchOutOfResources;
  }
  return queue(stream, [=] {
    if (++launches == fail_at)
      lost = true;
    else
      run_grid(grid, block, thread);
  });
}

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = device_total();
  return *count ? cudaSuccess : cudaErrorNoDevice;
}
cudaError_t cudaDriverGetVersion(int* version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = current_device, cudaSuccess; }
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= device_total()) return cudaErrorInvalidDevice;
  return current_device = device, cudaSuccess;
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
      return *value = 9, cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      return *value = 0, cudaSuccess;
    default:
      return cudaErrorInvalidValue;
  }
}
#undef cudaGetDeviceProperties
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  *p = cudaDeviceProp{};
  std::snprintf(p->name, sizeof p->name, "emulated device %d", device);
  p->major = 9;
  p->totalGlobalMem = setting("TENON_EMULATED_MEMORY", uint64_t{1} << 30);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  std::lock_guard lock(mutex);
  *total = setting("TENON_EMULATED_MEMORY", uint64_t{1} << 30);
  *free = *total - used[current_device];
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** p, size_t bytes) {
  std::lock_guard lock(mutex);
  if (lost) return cudaErrorIllegalAddress;
  auto& taken = used[current_device];
  if (bytes > setting("TENON_EMULATED_MEMORY", uint64_t{1} << 30) - taken) return cudaErrorMemoryAllocation;
  *p = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!*p) return cudaErrorMemoryAllocation;
  std::memset(*p, 0xcb, bytes);  // what a kernel reads before anything wrote it must show
  memory[static_cast<char*>(*p)] = {bytes, current_device};
  taken += bytes;
  return cudaSuccess;
}
cudaError_t cudaFree(void* p) {
  std::lock_guard lock(mutex);
  auto it = memory.find(static_cast<char*>(p));
  if (it == memory.end()) return p ? cudaErrorInvalidValue : cudaSuccess;
  used[it->second.device] -= it->second.bytes;
  memory.erase(it);
  std::free(p);
  return lost ? cudaErrorIllegalAddress : cudaSuccess;
}
cudaError_t cudaHostAlloc(void** p, size_t bytes, unsigned) {
  *p = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  return *p ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFreeHost(void* p) { return std::free(p), cudaSuccess; }

cudaError_t cudaMemcpyAsync(void* dst, const void* src, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  std::lock_guard lock(mutex);
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (to_device != is_device_memory(dst, bytes) || from_device != is_device_memory(src, bytes)) return cudaErrorInvalidValue;
  return queue(stream, [=] { std::memcpy(dst, src, bytes); });
}
cudaError_t cudaMemcpyPeerAsync(void* dst, int dst_device, const void* src, int src_device, size_t bytes, cudaStream_t stream) {
  std::lock_guard lock(mutex);
  if (!is_device_memory(dst, bytes) || !is_device_memory(src, bytes)) return cudaErrorInvalidValue;
  auto device_of = [](const void* p) { return std::prev(memory.upper_bound(static_cast<const char*>(p)))->second.device; };
  if (device_of(dst) != dst_device || device_of(src) != src_device) return cudaErrorInvalidValue;
  return queue(stream, [=] { std::memcpy(dst, src, bytes); });
}
cudaError_t cudaMemsetAsync(void* dst, int value, size_t bytes, cudaStream_t stream) {
  std::lock_guard lock(mutex);
  if (bytes && !is_device_memory(dst, bytes)) return cudaErrorInvalidValue;
  return queue(stream, [=] { std::memset(dst, value, bytes); });
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) { return *can = 1, cudaSuccess; }
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return *stream = new CUstream_st, cudaSuccess; }
cudaError_t cudaStreamDestroy(cudaStream_t stream) { return delete stream, cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return state_of(stream); }
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t, unsigned) { return state_of(stream); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return *event = new CUevent_st, cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t event) { return delete event, cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t stream) { return state_of(stream); }
cudaError_t cudaEventQuery(cudaEvent_t) { return lost ? cudaErrorIllegalAddress : cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return lost ? cudaErrorIllegalAddress : cudaSuccess; }

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  std::lock_guard lock(mutex);
  if (lost) return cudaErrorIllegalAddress;
  if (stream->capturing) return cudaErrorIllegalState;
  stream->capturing = true;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  std::lock_guard lock(mutex);
  if (!stream->capturing) return cudaErrorIllegalState;
  stream->capturing = false;
  auto tasks = std::exchange(stream->tasks, {});
  if (std::exchange(stream->invalid, false)) return *graph = nullptr, cudaErrorStreamCaptureInvalidated;
  *graph = new CUgraph_st{std::move(tasks)};
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  return *exec = new CUgraphExec_st{graph->tasks}, cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return delete graph, cudaSuccess; }
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  std::lock_guard lock(mutex);
  if (cudaError_t code = state_of(stream); code != cudaSuccess) return code;
  for (auto& task : exec->tasks)
    if (cudaError_t code = queue(stream, task); code != cudaSuccess) return code;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) { return delete exec, cudaSuccess; }

cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
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
