// What the opaque handles of the ABI stand for here: devices, streams and events.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include <cuda_runtime_api.h>

#include <tenon/plugins/abi/abi.h>

#include "fault.h"

namespace tenon::cuda {
struct VendorHandles;
}

struct tn_device {
  int ordinal = 0;  // as CUDA counts the devices that CUDA_VISIBLE_DEVICES leaves
  int multiprocessors = 1;
  int threads_per_multiprocessor = 2048;
  int capability = 0;  // 90 for 9.0
  uint64_t l2_bytes = 0;
  std::atomic<uint64_t> peers{0};    // bit i: reading device i directly was set up, where it can be
  std::atomic<bool> started{false};  // work or memory was asked of it; only listing devices takes nothing from them
};

struct tn_stream {
  tn_device* device;
  cudaStream_t handle;
  tenon::cuda::Fault* fault;  // pinned, written by kernels that meet a bad index, read when an event is reached
  bool capturing = false;
  std::unique_ptr<tenon::cuda::VendorHandles> vendor;  // cuBLASLt and cuDNN, made when first needed

  tn_stream(tn_device* device, cudaStream_t handle, tenon::cuda::Fault* fault);
  ~tn_stream();
};

struct tn_event {
  cudaEvent_t handle;
  tn_device* device;
  tn_stream* stream = nullptr;  // it was last recorded on; null before
};

namespace tenon::cuda {

// Makes a device current for the calls of this scope. What was current before comes back, because the user's own code may use CUDA.
class CurrentDevice {
 public:
  explicit CurrentDevice(const tn_device* device);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = -1;  // to restore; -1 where nothing was changed
};

}  // namespace tenon::cuda
