// Handles of cuBLASLt and cuDNN. Those of a stream run plans; a device has another pair, with which plans are made.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include <cuda_runtime_api.h>

struct cublasLtContext;
struct cudnnContext;
struct tn_device;
struct tn_stream;

namespace tenon::cuda {

// Made when first asked for, with the device current that they are for. Used by one thread at a time.
struct VendorHandles {
  explicit VendorHandles(cudaStream_t stream) : stream(stream) {}
  ~VendorHandles();
  VendorHandles(const VendorHandles&) = delete;
  VendorHandles& operator=(const VendorHandles&) = delete;

  // Throw sdk::Error where the library is missing or does not start.
  cublasLtContext* blas();
  cudnnContext* dnn();

 private:
  cudaStream_t stream;
  cublasLtContext* blas_ = nullptr;
  cudnnContext* dnn_ = nullptr;
  std::string why_no_dnn_;  // remembered: to try again at each plan would take its time each time
};

// Those of a stream, which is being run on by the calling thread.
VendorHandles& handles_of(tn_stream* stream);

// Those of a device for making plans, held by this thread for as long as the result lives. The device is current.
struct PlanningHandles {
  std::unique_lock<std::mutex> lock;
  VendorHandles& handles;
};
PlanningHandles planning_handles(const tn_device* device);

// The workspace in tn_run is aligned to 64; the libraries want 256. Ask for `padded_workspace` bytes, use `aligned_workspace`.
inline uint64_t padded_workspace(uint64_t bytes) { return bytes ? bytes + 192 : 0; }
inline void* aligned_workspace(void* workspace) {
  return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(workspace) + 255) & ~uintptr_t{255});
}

}  // namespace tenon::cuda
