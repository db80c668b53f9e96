// Handles of cuBLASLt and cuDNN: one pair for a device.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include <cuda_runtime_api.h>

#include <tenon/plugins/sdk/sdk.h>

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
  // Remembered where it will not change: to try again at each plan would take its time each time.
  std::string why_no_dnn_;
};

// Those of a device; they live as long as the process.
VendorHandles& handles_of(const tn_device* device);
void forget_stream(const tn_stream* stream);

// Throws TN_CODE_DEVICE_LOST where the device of the stream, which is current, is lost.
void throw_if_lost(const tn_stream* stream);

// Runs `call`, which has a library queue work on the stream. After an illegal address the libraries
// say no more than that something failed: the stream knows that the device is lost.
template <class F>
void queue_by_library(const tn_stream* stream, F&& call) {
  try {
    call();
  } catch (const sdk::Error& e) {
    if (e.code() != TN_CODE_UNSUPPORTED && e.code() != TN_CODE_OUT_OF_MEMORY) throw_if_lost(stream);
    throw;
  }
}

// The workspace in tn_run is aligned to 64; the libraries want 256. Ask for `padded_workspace`
// bytes, use `aligned_workspace`.
inline uint64_t padded_workspace(uint64_t bytes) { return bytes ? bytes + 192 : 0; }
inline void* aligned_workspace(void* workspace) {
  return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(workspace) + 255) & ~uintptr_t{255});
}

}  // namespace tenon::cuda
