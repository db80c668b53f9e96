// What all functions of the emulated runtime share.
#pragma once

#include <mutex>
#include <utility>

#include <cuda_runtime_api.h>

#include "scheduler.h"

namespace tenon::emulated {

extern thread_local int current_device;

// What a function answers; errors are remembered for cudaGetLastError.
cudaError_t answer(cudaError_t code);

// For a call that needs a context: the thread has one from then on, and the device is started.
void start(int device);

// `f` on the stream, under the lock; the error where there is none, or the device is lost.
template <class F>
cudaError_t with_stream(cudaStream_t handle, F&& f) {
  std::lock_guard guard(lock());
  start(current_device);
  if (lost) return answer(cudaErrorIllegalAddress);
  Stream* stream = find_stream(handle, current_device);
  return answer(stream ? f(stream) : cudaErrorInvalidResourceHandle);
}

}  // namespace tenon::emulated
