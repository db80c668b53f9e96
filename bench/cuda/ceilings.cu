// What the device gives at best, for the figures of cuda_bench to be measured against: the cost of
// a bare kernel launch, the bandwidth of a device-to-device copy, and for each matrix product the
// fastest of cuBLASLt's algorithms. Prints JSON.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "../../backends/cuda/vendor/library.h"

namespace {

using tenon::cuda::cublaslt;

void must(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "ceilings: %s: %s\n", what, cudaGetErrorString(code));
  std::exit(1);
}
void must(cublasStatus_t status, const char* what) { tenon::cuda::check(status, what); }

__global__ void nothing(float*) {}
__global__ void fill(float* x, size_t n) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < n;
       i += size_t{gridDim.x} * blockDim.x)
    x[i] = static_cast<float>(i * 2654435761u % 1000) * 1e-3f - 0.5f;
}
__global__ void fill(__nv_bfloat16* x, size_t n) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < n;
       i += size_t{gridDim.x} * blockDim.x)
    x[i] = __float2bfloat16(static_cast<float>(i * 2654435761u % 1000) * 1e-3f - 0.5f);
}

// Seconds on the device for one of `repeats` runs of f: the least of five tries.
template <class F>
double seconds(cudaStream_t stream, int repeats, F f) {
  cudaEvent_t begin, end;
  must(cudaEventCreate(&begin), "event");
  must(cudaEventCreate(&end), "event");
  f();
  float least = 1e30f;
  for (int attempt = 0; attempt < 5; ++attempt) {
    must(cudaEventRecord(begin, stream), "event");
    for (int i = 0; i < repeats; ++i) f();
    must(cudaEventRecord(end, stream), "event");
    must(cudaEventSynchronize(end), "event");
    float ms = 0;
    must(cudaEventElapsedTime(&ms, begin, end), "event");
    least = std::min(least, ms);
  }
  return least * 1e-3 / repeats;
}

double launch_seconds(cudaStream_t stream) {
  constexpr int burst = 200;
  std::vector<double> times;
  for (int i = 0; i < 50; ++i) {
    must(cudaStreamSynchronize(stream), "wait");
    auto start = std::chrono::steady_clock::now();
    for (int k = 0; k < burst; ++k) nothing<<<1, 32, 0, stream>>>(nullptr);
    times.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / burst);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

struct Product {
  const char* name;
  int n;
  cudaDataType_t type;
  cublasComputeType_t compute;
};

double best_product(cublasLtHandle_t handle, cudaStream_t stream, const Product& p, void* a,
                    void* b, void* c, void* workspace, size_t workspace_bytes) {
  auto& lt = cublaslt();
  cublasLtMatmulDesc_t desc;
  must(lt.cublasLtMatmulDescCreate(&desc, p.compute, CUDA_R_32F), "descriptor");
  cublasLtMatrixLayout_t layout;
  must(lt.cublasLtMatrixLayoutCreate(&layout, p.type, p.n, p.n, p.n), "layout");
  cublasLtMatmulPreference_t preference;
  must(lt.cublasLtMatmulPreferenceCreate(&preference), "preference");
  must(lt.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                               &workspace_bytes, sizeof workspace_bytes),
       "preference");
  cublasLtMatmulHeuristicResult_t found[32];
  int count = 0;
  must(lt.cublasLtMatmulAlgoGetHeuristic(handle, desc, layout, layout, layout, layout, preference,
                                         32, found, &count),
       "heuristic");
  double best = 1e30;
  const float one = 1, zero = 0;
  for (int i = 0; i < count; ++i) {
    auto run = [&] {
      return lt.cublasLtMatmul(handle, desc, &one, a, layout, b, layout, &zero, c, layout, c,
                               layout, &found[i].algo, workspace, workspace_bytes, stream);
    };
    if (found[i].state != CUBLAS_STATUS_SUCCESS || run() != CUBLAS_STATUS_SUCCESS) continue;
    best = std::min(best, seconds(stream, 10, run));
  }
  lt.cublasLtMatmulPreferenceDestroy(preference);
  lt.cublasLtMatrixLayoutDestroy(layout);
  lt.cublasLtMatmulDescDestroy(desc);
  return best;
}

}  // namespace

int main() try {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::fprintf(stderr, "ceilings: there is no CUDA device\n");
    return 0;
  }
  cudaStream_t stream;
  must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  constexpr size_t bytes = size_t{1} << 30, workspace_bytes = size_t{32} << 20;
  void *a, *b, *c, *workspace;
  for (void** p : {&a, &b, &c}) must(cudaMalloc(p, bytes), "memory");
  must(cudaMalloc(&workspace, workspace_bytes), "memory");
  std::printf("{\n  \"launch\": %.9g", launch_seconds(stream));
  const double copy = seconds(
      stream, 10, [&] { return cudaMemcpyAsync(b, a, bytes, cudaMemcpyDeviceToDevice, stream); });
  std::printf(",\n  \"bytes_per_second\": %.9g", 2.0 * bytes / copy);

  cublasLtHandle_t handle;
  must(cublaslt().cublasLtCreate(&handle), "cuBLASLt");
  const Product products[] = {{"bf16", 4096, CUDA_R_16BF, CUBLAS_COMPUTE_32F},
                              {"tf32", 4096, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32},
                              {"f32", 4096, CUDA_R_32F, CUBLAS_COMPUTE_32F},
                              {"bf16", 8192, CUDA_R_16BF, CUBLAS_COMPUTE_32F},
                              {"tf32", 8192, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32},
                              {"f32", 8192, CUDA_R_32F, CUBLAS_COMPUTE_32F}};
  for (auto& p : products) {
    const size_t elements = size_t(p.n) * p.n;
    for (void* x : {a, b}) {
      if (p.type == CUDA_R_16BF)
        fill<<<1024, 256, 0, stream>>>(static_cast<__nv_bfloat16*>(x), elements);
      else
        fill<<<1024, 256, 0, stream>>>(static_cast<float*>(x), elements);
    }
    std::printf(",\n  \"matmul/%d_%s\": %.9g", p.n, p.name,
                best_product(handle, stream, p, a, b, c, workspace, workspace_bytes));
  }
  std::printf("\n}\n");
  must(cudaDeviceSynchronize(), "end");
} catch (const std::exception& e) {
  std::fprintf(stderr, "ceilings: %s\n", e.what());
  return 1;
}
