// The vendor's libraries, opened when first needed and never linked: cuBLASLt alone maps more than
// 500 MB, which a program that only lists devices must not pay for, and a library that is missing
// must be a reason, not a program that does not start.
//
// Places, in this order: the folders in TENON_CUDA_LIBRARY_PATH (absolute, separated by colons),
// the dynamic linker's own search, the folders known when the plugin was built, and the NVIDIA
// packages of a Python environment that is active (VIRTUAL_ENV or CONDA_PREFIX).
#pragma once

#include <string>

#include <cublasLt.h>
#include <cudnn.h>
#include <nccl.h>

namespace tenon::cuda {

#define TENON_CUBLASLT_FUNCTIONS(X)       \
  X(cublasLtCreate)                       \
  X(cublasLtDestroy)                      \
  X(cublasLtGetStatusString)              \
  X(cublasLtGetVersion)                   \
  X(cublasLtMatmul)                       \
  X(cublasLtMatmulAlgoGetHeuristic)       \
  X(cublasLtMatmulDescCreate)             \
  X(cublasLtMatmulDescDestroy)            \
  X(cublasLtMatmulDescSetAttribute)       \
  X(cublasLtMatmulPreferenceCreate)       \
  X(cublasLtMatmulPreferenceDestroy)      \
  X(cublasLtMatmulPreferenceSetAttribute) \
  X(cublasLtMatrixLayoutCreate)           \
  X(cublasLtMatrixLayoutDestroy)          \
  X(cublasLtMatrixLayoutSetAttribute)

#define TENON_CUDNN_FUNCTIONS(X)   \
  X(cudnnBackendCreateDescriptor)  \
  X(cudnnBackendDestroyDescriptor) \
  X(cudnnBackendExecute)           \
  X(cudnnBackendFinalize)          \
  X(cudnnBackendGetAttribute)      \
  X(cudnnBackendSetAttribute)      \
  X(cudnnCreate)                   \
  X(cudnnDestroy)                  \
  X(cudnnGetErrorString)           \
  X(cudnnGetLastErrorString)       \
  X(cudnnGetVersion)               \
  X(cudnnSetStream)

#define TENON_NCCL_FUNCTIONS(X) \
  X(ncclAllReduce)              \
  X(ncclBroadcast)              \
  X(ncclCommAbort)              \
  X(ncclCommDestroy)            \
  X(ncclCommGetAsyncError)      \
  X(ncclCommInitAll)            \
  X(ncclGetErrorString)         \
  X(ncclGetLastError)           \
  X(ncclGetVersion)             \
  X(ncclGroupEnd)               \
  X(ncclGroupStart)

#define TENON_MEMBER(name) decltype(&::name) name;
struct CublasLt {
  TENON_CUBLASLT_FUNCTIONS(TENON_MEMBER)
};
struct Cudnn {
  TENON_CUDNN_FUNCTIONS(TENON_MEMBER)
};
struct Nccl {
  TENON_NCCL_FUNCTIONS(TENON_MEMBER)
};
#undef TENON_MEMBER

// The table of each, opened by the first call. Throws sdk::Error (TN_CODE_UNAVAILABLE), every time
// the same, which names each place that was tried and what was wrong there: no such file, another
// version, a missing function.
const CublasLt& cublaslt();
const Cudnn& cudnn();
const Nccl& nccl();

[[noreturn]] void throw_status(cublasStatus_t status, const std::string& what);
[[noreturn]] void throw_status(cudnnStatus_t status, const std::string& what);
[[noreturn]] void throw_status(ncclResult_t status, const std::string& what);

// Throw sdk::Error where a call failed. `what` says what was asked.
inline void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) throw_status(status, what);
}
inline void check(cudnnStatus_t status, const char* what) {
  if (status != CUDNN_STATUS_SUCCESS) throw_status(status, what);
}
inline void check(ncclResult_t status, const std::string& what) {
  if (status != ncclSuccess && status != ncclInProgress) throw_status(status, what);
}

}  // namespace tenon::cuda
