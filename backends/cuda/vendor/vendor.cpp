#include "vendor/vendor.h"

#include <map>
#include <memory>

#include "runtime/check.h"
#include "runtime/device.h"
#include "runtime/runtime.h"
#include "vendor/library.h"

namespace tenon::cuda {

namespace {

// Its parts do not fit together, or are missing.
bool will_not_change(cudnnStatus_t status) {
  return status == CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH ||
         status == CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED;
}

// Where the device is full, cuDNN says that it was not initialized, or that it failed inside
// (https://github.com/tensorflow/tensorflow/issues/24496).
void throw_if_full(cudnnStatus_t status) {
  constexpr size_t kRoom = size_t{256} << 20;  // more than its start takes
  if (status != CUDNN_STATUS_NOT_INITIALIZED && status != CUDNN_STATUS_INTERNAL_ERROR) return;
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  if (free < kRoom)
    throw sdk::Error(TN_CODE_OUT_OF_MEMORY,
                     sdk::text("cuDNN does not start with {} MiB of free memory on the device: {}",
                               free >> 20, cudnn().cudnnGetErrorString(status)));
}

}  // namespace

cublasLtContext* VendorHandles::blas() {
  std::lock_guard guard(blas_mutex_);
  if (!blas_) check(cublaslt().cublasLtCreate(&blas_), "cublasLtCreate");
  return blas_;
}

cudnnContext* VendorHandles::open_dnn() {
  if (dnn_) return dnn_;
  if (!why_no_dnn_.empty()) throw sdk::Error(TN_CODE_UNAVAILABLE, why_no_dnn_);
  const cudnnStatus_t status = cudnn().cudnnCreate(&dnn_);
  if (status == CUDNN_STATUS_SUCCESS) return dnn_;
  dnn_ = nullptr;
  throw_if_full(status);
  try {
    throw_status(status, "cudnnCreate");
  } catch (const sdk::Error& e) {
    if (will_not_change(status)) why_no_dnn_ = e.what();
    throw;
  }
}

VendorHandles::Dnn VendorHandles::dnn() {
  std::unique_lock lock(dnn_mutex_);
  auto* handle = open_dnn();
  return {std::move(lock), handle};
}

VendorHandles::Dnn VendorHandles::dnn(cudaStream_t stream) {
  Dnn dnn = this->dnn();
  if (stream != dnn_stream_) {
    dnn_stream_ = nullptr;  // unknown if the next call fails
    check(cudnn().cudnnSetStream(dnn.handle, stream), "cudnnSetStream");
    dnn_stream_ = stream;
  }
  return dnn;
}

void VendorHandles::forget(cudaStream_t stream) {
  std::lock_guard guard(dnn_mutex_);
  if (dnn_stream_ != stream) return;
  dnn_stream_ = nullptr;
  // So that the handle does not keep a stream that is gone.
  if (dnn_ && !ending()) cudnn().cudnnSetStream(dnn_, nullptr);
}

namespace {

// Never destroyed: at exit the driver may be gone before static objects are.
struct All {
  std::mutex mutex;
  std::map<int, std::unique_ptr<VendorHandles>> by_ordinal;
};
All& all() {
  static auto& handles = *new All;
  return handles;
}

}  // namespace

VendorHandles& handles_of(const tn_device* device) {
  std::lock_guard guard(all().mutex);
  auto& handles = all().by_ordinal[device->ordinal];
  if (!handles) handles = std::make_unique<VendorHandles>();
  return *handles;
}

void forget_stream(const tn_stream* stream) { handles_of(stream->device).forget(stream->handle); }

void throw_if_lost(const tn_stream* stream) {
  if (stream->capturing) return;  // the question would spoil the recording
  const cudaError_t code = cudaStreamQuery(stream->handle);
  if (code == cudaErrorNotReady) return;
  try {
    check(code, "queued work");
  } catch (const sdk::Error& e) {
    if (e.code() == TN_CODE_DEVICE_LOST) throw;
  }
}

}  // namespace tenon::cuda
