#include "vendor/vendor.h"

#include <map>
#include <memory>

#include <tenon/plugins/sdk/sdk.h>

#include "runtime/device.h"
#include "vendor/library.h"

namespace tenon::cuda {

cublasLtContext* VendorHandles::blas() {
  std::lock_guard guard(blas_mutex_);
  if (!blas_) check(cublaslt().cublasLtCreate(&blas_), "cublasLtCreate");
  return blas_;
}

cudnnContext* VendorHandles::open_dnn() {
  if (dnn_) return dnn_;
  if (!why_no_dnn_.empty()) throw sdk::Error(TN_CODE_UNAVAILABLE, why_no_dnn_);
  try {
    check(cudnn().cudnnCreate(&dnn_), "cudnnCreate");
    return dnn_;
  } catch (const sdk::Error& e) {
    dnn_ = nullptr;
    if (e.code() == TN_CODE_UNAVAILABLE) why_no_dnn_ = e.what();
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
  if (dnn_stream_ == stream) dnn_stream_ = nullptr;
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

}  // namespace tenon::cuda
