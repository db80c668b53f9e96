// What the opaque handles of the ABI stand for here: devices, streams and events.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include <cuda_runtime_api.h>

#include <tenon/plugins/abi/abi.h>

#include "runtime/fault.h"

namespace tenon::cuda {
class VendorHandles;
}

struct tn_device {
  int ordinal = 0;  // as CUDA counts the devices that CUDA_VISIBLE_DEVICES leaves
  int multiprocessors = 1;
  int threads_per_multiprocessor = 2048;
  int capability = 0;  // 90 for 9.0
  uint64_t l2_bytes = 0;
  std::atomic<uint64_t> peers{0};  // bit i: reading device i directly was set up, where it can be
  std::atomic<bool> started{
      false};  // work or memory was asked of it; only listing devices takes nothing from them
};

struct tn_stream {
  tn_device* device;
  cudaStream_t handle;
  // Where kernels that are queued now file what they meet: the stream's own record, or that of the
  // graph while it captures.
  tenon::cuda::Fault* fault;
  std::shared_ptr<tenon::cuda::FaultList> faults;  // all that work on this stream may file
  std::shared_ptr<tenon::cuda::PinnedFault>
      captured_faults;  // the graph's; null unless it captures
  std::atomic<bool> capturing{false};
};

struct tn_event {
  cudaEvent_t handle;
  tn_device* device;
  std::shared_ptr<tenon::cuda::FaultList>
      faults;  // of the stream it was last recorded on; null before
};

namespace tenon::cuda {

// Makes a device current for the calls of this scope. A thread whose own code has chosen another
// device gets that one back. One that has not started any keeps this one, so that the threads that
// queue work choose once, and no device is started by being restored.
class CurrentDevice {
 public:
  explicit CurrentDevice(const tn_device* device);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = -1;  // to restore; -1 where nothing is
};

}  // namespace tenon::cuda
