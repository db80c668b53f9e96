// Stands in for libcudnn where nothing but its start is of interest: it offers no engine, so that
// convolutions run on the plugin's own kernels. TENON_EMULATED_CUDNN=n: cudnnCreate answers with
// the status n. How often it was asked is its data object `tenon_emulated_cudnn_starts`.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <cudnn.h>

#define API __attribute__((visibility("default")))

extern "C" {

API uint64_t tenon_emulated_cudnn_starts = 0;

API size_t cudnnGetVersion() { return CUDNN_VERSION; }
API const char* cudnnGetErrorString(cudnnStatus_t) { return "refused by the stand-in for cuDNN"; }
API void cudnnGetLastErrorString(char* message, size_t bytes) {
  std::snprintf(message, bytes, "%s", "");
}

API cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  ++tenon_emulated_cudnn_starts;
  if (const char* status = std::getenv("TENON_EMULATED_CUDNN"))
    return static_cast<cudnnStatus_t>(std::atoi(status));
  *handle = reinterpret_cast<cudnnHandle_t>(new char);
  return CUDNN_STATUS_SUCCESS;
}
API cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete reinterpret_cast<char*>(handle);
  return CUDNN_STATUS_SUCCESS;
}
API cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t) { return CUDNN_STATUS_SUCCESS; }

API cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t,
                                               cudnnBackendDescriptor_t*) {
  return CUDNN_STATUS_NOT_SUPPORTED;
}
API cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t) {
  return CUDNN_STATUS_NOT_SUPPORTED;
}
API cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t) {
  return CUDNN_STATUS_NOT_SUPPORTED;
}
API cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                                           cudnnBackendAttributeType_t, int64_t, const void*) {
  return CUDNN_STATUS_NOT_SUPPORTED;
}
API cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                                           cudnnBackendAttributeType_t, int64_t, int64_t*, void*) {
  return CUDNN_STATUS_NOT_SUPPORTED;
}
API cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t,
                                      cudnnBackendDescriptor_t) {
  return CUDNN_STATUS_NOT_SUPPORTED;
}

}  // extern "C"
