// CUDA's return codes as errors of the ABI.
#pragma once

#include <cuda_runtime_api.h>

#include <tenon/plugins/sdk/sdk.h>

namespace tenon::cuda {

// Throws sdk::Error where `code` is no success: out of memory, device lost (every error after which
// a CUDA context cannot be used again), unavailable or internal. `what` names the call: "cudaMalloc
// of 4096 bytes".
void check(cudaError_t code, const char* what);
[[noreturn]] void throw_cuda_error(cudaError_t code, const std::string& what);

}  // namespace tenon::cuda
