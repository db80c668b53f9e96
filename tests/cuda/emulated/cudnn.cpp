// Stands in for libcudnn where it does not work. TENON_EMULATED_CUDNN=n: cudnnCreate answers with
// the status n. It offers no engine, so that convolutions run on the plugin's own kernels; with
// TENON_EMULATED_CUDNN_ENGINE one: "fails" when it is executed, or wants too "large" a workspace.
// As the real one may, it counts more engines than it was asked for. Its data objects say how often
// it was started, and which stream its handle has.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <cudnn.h>

#define API __attribute__((visibility("default")))

namespace {
std::string_view engine() {
  const char* offered = std::getenv("TENON_EMULATED_CUDNN_ENGINE");
  return offered ? offered : "";
}
}  // namespace

extern "C" {

API uint64_t tenon_emulated_cudnn_starts = 0;
API cudaStream_t tenon_emulated_cudnn_stream = nullptr;

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
API cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t stream) {
  return tenon_emulated_cudnn_stream = stream, CUDNN_STATUS_SUCCESS;
}

API cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t,
                                               cudnnBackendDescriptor_t* descriptor) {
  if (engine().empty()) return CUDNN_STATUS_NOT_SUPPORTED;
  return *descriptor = new char, CUDNN_STATUS_SUCCESS;
}
API cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  return delete static_cast<char*>(descriptor), CUDNN_STATUS_SUCCESS;
}
API cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t) { return CUDNN_STATUS_SUCCESS; }
API cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                           cudnnBackendAttributeName_t, cudnnBackendAttributeType_t,
                                           int64_t, const void*) {
  return descriptor ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
}
API cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                           cudnnBackendAttributeName_t name,
                                           cudnnBackendAttributeType_t, int64_t room,
                                           int64_t* count, void* values) {
  if (!descriptor) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  *count = 1;
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      if (room > 0) *count = 3;
      break;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      *count = 0;
      break;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      *static_cast<int64_t*>(values) = engine() == "large" ? int64_t{1} << 40 : 0;
      break;
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
      *static_cast<int64_t*>(values) = 0;
      break;
    default:
      break;
  }
  return CUDNN_STATUS_SUCCESS;
}
API cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t,
                                      cudnnBackendDescriptor_t) {
  return CUDNN_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
