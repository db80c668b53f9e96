#include "vendor.h"

#include <map>

#include <tenon/plugins/sdk/sdk.h>

#include "device.h"
#include "library.h"

namespace tenon::cuda {

VendorHandles::~VendorHandles() {
  if (blas_) cublaslt().cublasLtDestroy(blas_);
  if (dnn_) cudnn().cudnnDestroy(dnn_);
}

cublasLtContext* VendorHandles::blas() {
  if (!blas_) check(cublaslt().cublasLtCreate(&blas_), "cublasLtCreate");
  return blas_;
}

cudnnContext* VendorHandles::dnn() {
  if (dnn_) return dnn_;
  if (!why_no_dnn_.empty()) throw sdk::Error(TN_CODE_UNAVAILABLE, why_no_dnn_);
  try {
    cudnnContext* handle = nullptr;
    check(cudnn().cudnnCreate(&handle), "cudnnCreate");
    const cudnnStatus_t status = cudnn().cudnnSetStream(handle, stream);
    if (status != CUDNN_STATUS_SUCCESS) cudnn().cudnnDestroy(handle);
    check(status, "cudnnSetStream");
    return dnn_ = handle;
  } catch (const sdk::Error& e) {
    if (e.code() == TN_CODE_UNAVAILABLE) why_no_dnn_ = e.what();
    throw;
  }
}

VendorHandles& handles_of(tn_stream* stream) {
  if (!stream->vendor) stream->vendor = std::make_unique<VendorHandles>(stream->handle);
  return *stream->vendor;
}

PlanningHandles planning_handles(const tn_device* device) {
  struct Entry {
    std::mutex mutex;
    VendorHandles handles{nullptr};
  };
  // Never destroyed: at exit the driver may be gone before static objects are.
  static auto& entries = *new std::map<int, std::unique_ptr<Entry>>;
  static std::mutex mutex;
  Entry* entry;
  {
    std::lock_guard guard(mutex);
    auto& slot = entries[device->ordinal];
    if (!slot) slot = std::make_unique<Entry>();
    entry = slot.get();
  }
  return {std::unique_lock(entry->mutex), entry->handles};
}

}  // namespace tenon::cuda
