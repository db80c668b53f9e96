// What the emulated runtime was asked: its data object `tenon_emulated_cuda_counters`.
#pragma once

#include <atomic>
#include <cstdint>

namespace tenon::emulated {

struct CudaCounters {
  std::atomic<uint64_t> device_calls;  // of cudaGetDevice and cudaSetDevice
  std::atomic<uint64_t> contexts;  // bit i: device i was started, which on a real one takes memory
  std::atomic<uint64_t> launches;  // kernels that were queued, or recorded
  std::atomic<uint64_t> graph_launches;
  std::atomic<uint64_t> host_allocations;  // of pinned memory, which wait for the device
  // Loads and stores of 16 bytes, by kernels that were compiled while the process ran.
  std::atomic<uint64_t> wide_accesses;
};

}  // namespace tenon::emulated
