// Handles of cuBLASLt and cuDNN: one pair for a device.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include <cuda_runtime_api.h>

struct cublasLtContext;
struct cudnnContext;
struct tn_device;
struct tn_stream;

namespace tenon::cuda {

// Several threads may call cuDNN if they do not share a handle. Executing a plan with another
// handle than the one it was made with is known to fail, so a plan is always executed with its own
// handle, by one thread at a time, after the handle was set to the stream. cuBLASLt's handle may be
// shared by threads; each product names its stream.
class VendorHandles {
 public:
  VendorHandles() = default;
  VendorHandles(const VendorHandles&) = delete;

  // Throws sdk::Error where the library is missing or does not start. The device is current; any
  // thread.
  cublasLtContext* blas();

  // cuDNN's handle, this thread's own for as long as it lives.
  struct Dnn {
    std::unique_lock<std::mutex> lock;
    cudnnContext* handle;
  };
  // Throws likewise. For making plans.
  Dnn dnn();
  // For executing them on a stream.
  Dnn dnn(cudaStream_t stream);
  // A stream goes: another may come with its address.
  void forget(cudaStream_t stream);

 private:
  cudnnContext* open_dnn();

  std::mutex blas_mutex_, dnn_mutex_;
  cublasLtContext* blas_ = nullptr;
  cudnnContext* dnn_ = nullptr;
  cudaStream_t dnn_stream_ = nullptr;
  std::string why_no_dnn_;  // remembered: to try again at each plan would take its time each time
};

// Those of a device; they live as long as the process.
VendorHandles& handles_of(const tn_device* device);
void forget_stream(const tn_stream* stream);

// The workspace in tn_run is aligned to 64; the libraries want 256. Ask for `padded_workspace`
// bytes, use `aligned_workspace`.
inline uint64_t padded_workspace(uint64_t bytes) { return bytes ? bytes + 192 : 0; }
inline void* aligned_workspace(void* workspace) {
  return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(workspace) + 255) & ~uintptr_t{255});
}

}  // namespace tenon::cuda
