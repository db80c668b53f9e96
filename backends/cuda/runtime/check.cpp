#include "runtime/check.h"

#include <string>

namespace tenon::cuda {

namespace {

// After these the context is gone for good, whatever was asked of it.
bool loses_the_device(cudaError_t code) {
  switch (code) {
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorHardwareStackError:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorExternalDevice:
    case cudaErrorMpsClientTerminated:
#if CUDART_VERSION >= 12080
    case cudaErrorTensorMemoryLeak:
#endif
      return true;
    default:
      return false;
  }
}

tn_code code_of(cudaError_t code) {
  switch (code) {
    case cudaErrorMemoryAllocation:
      return TN_CODE_OUT_OF_MEMORY;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorDevicesUnavailable:  // at this time
    case cudaErrorInsufficientDriver:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorSystemNotReady:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorStubLibrary:
      return TN_CODE_UNAVAILABLE;
    case cudaErrorNotSupported:
    case cudaErrorPeerAccessUnsupported:
      return TN_CODE_UNSUPPORTED;
    default:
      return loses_the_device(code) ? TN_CODE_DEVICE_LOST : TN_CODE_INTERNAL;
  }
}

}  // namespace

void throw_cuda_error(cudaError_t code, const std::string& what) {
  cudaGetLastError();  // errors that do not stick would otherwise be found by a later, innocent
                       // call
  std::string message =
      what + ": " + cudaGetErrorString(code) + " (" + cudaGetErrorName(code) + ")";
  if (loses_the_device(code)) message += "; the device cannot be used again in this process";
  throw sdk::Error(code_of(code), message,
                   {{"cuda_error", std::to_string(static_cast<int>(code))}});
}

void check(cudaError_t code, const char* what) {
  if (code != cudaSuccess) throw_cuda_error(code, what);
}

}  // namespace tenon::cuda
