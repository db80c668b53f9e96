// Stands in for libcublasLt: descriptors and layouts with the real meaning (columns, leading
// dimensions, transposes, batches, epilogues, promised alignments), products by three loops. What
// the real one refuses is refused here: sizes of attributes, layouts that do not fit together,
// pointers that break what was promised to the heuristic. Where partial sums may be kept in the
// type of the result, they are. TENON_EMULATED_NARROW_BIAS=0: no algorithm adds a bias to operands
// that are not aligned to 16 bytes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <vector>

#include <cublasLt.h>

#include "stream.h"

namespace {

struct Layout {
  cudaDataType type;
  uint64_t rows, cols;
  int64_t ld;
  int32_t batch = 1;
  int64_t batch_stride = 0;
};

struct Operation {
  cublasComputeType_t compute;
  cudaDataType scale;
  int32_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};

struct Preference {
  uint64_t workspace = 0;
  uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint32_t alignment[4] = {256, 256, 256, 256};  // of A, B, C, D
};

// What an algorithm remembers of what it was chosen for.
struct Promise {
  uint32_t alignment[4];
  uint32_t bias_alignment;
  bool rounds_partial_sums;  // to the type of the result
};
static_assert(sizeof(Promise) <= sizeof(cublasLtMatmulAlgo_t));

constexpr size_t kWorkspaceBytes = 640;  // some, so that it has to be handed over

Layout& of(cublasLtMatrixLayout_t d) { return *reinterpret_cast<Layout*>(d); }
Operation& of(cublasLtMatmulDesc_t d) { return *reinterpret_cast<Operation*>(d); }
Preference& of(cublasLtMatmulPreference_t d) { return *reinterpret_cast<Preference*>(d); }

template <class T>
cublasStatus_t read(T& to, const void* from, size_t bytes) {
  if (!from || bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

size_t size_of(cudaDataType t) { return t == CUDA_R_64F ? 8 : t == CUDA_R_32F ? 4 : 2; }
bool is_known(cudaDataType t) {
  return t == CUDA_R_64F || t == CUDA_R_32F || t == CUDA_R_16F || t == CUDA_R_16BF;
}

double load(const void* p, cudaDataType type, int64_t i) {
  switch (type) {
    case CUDA_R_64F:
      return static_cast<const double*>(p)[i];
    case CUDA_R_16F:
      return __half2float(static_cast<const __half*>(p)[i]);
    case CUDA_R_16BF:
      return __bfloat162float(static_cast<const __nv_bfloat16*>(p)[i]);
    default:
      return static_cast<const float*>(p)[i];
  }
}

void store(void* p, cudaDataType type, int64_t i, double x) {
  switch (type) {
    case CUDA_R_64F:
      static_cast<double*>(p)[i] = x;
      break;
    case CUDA_R_16F:
      static_cast<__half*>(p)[i] = __float2half_rn(static_cast<float>(x));
      break;
    case CUDA_R_16BF:
      static_cast<__nv_bfloat16*>(p)[i] = __float2bfloat16_rn(static_cast<float>(x));
      break;
    default:
      static_cast<float*>(p)[i] = static_cast<float>(x);
  }
}

double rounded(double x, cudaDataType type) {
  alignas(8) unsigned char place[8];
  store(place, type, 0, x);
  return load(place, type, 0);
}

// TF32 keeps 10 bits of the mantissa.
double to_tf32(double x) {
  auto f = static_cast<float>(x);
  uint32_t bits;
  std::memcpy(&bits, &f, sizeof bits);
  bits = (bits + 0x1000u) & ~0x1fffu;
  std::memcpy(&f, &bits, sizeof bits);
  return f;
}

bool fits(const Layout& l) {
  return is_known(l.type) && l.rows > 0 && l.cols > 0 && l.ld >= static_cast<int64_t>(l.rows);
}

bool fit_together(const Operation& op, const Layout& a, const Layout& b, const Layout& c,
                  const Layout& d) {
  auto rows = [](const Layout& l, int32_t t) { return t == CUBLAS_OP_N ? l.rows : l.cols; };
  auto cols = [](const Layout& l, int32_t t) { return t == CUBLAS_OP_N ? l.cols : l.rows; };
  const bool types = a.type == b.type && a.type == c.type && a.type == d.type &&
                     (op.scale == CUDA_R_64F) == (a.type == CUDA_R_64F) &&
                     (op.compute == CUBLAS_COMPUTE_64F) == (a.type == CUDA_R_64F);
  const bool batches =
      a.batch == b.batch && a.batch == c.batch && a.batch == d.batch && a.batch > 0;
  return types && batches && fits(a) && fits(b) && fits(c) && fits(d) &&
         rows(a, op.transpose_a) == d.rows && cols(b, op.transpose_b) == d.cols &&
         cols(a, op.transpose_a) == rows(b, op.transpose_b) && c.rows == d.rows && c.cols == d.cols;
}

bool refuses_narrow_bias() {
  const char* set = std::getenv("TENON_EMULATED_NARROW_BIAS");
  return set && std::string_view(set) == "0";
}

bool is_aligned(const void* p, uint64_t to) { return reinterpret_cast<uintptr_t>(p) % to == 0; }

struct Job {
  Operation op;
  Layout a, b, c, d;
  const void *pa, *pb, *pc;
  void* pd;
  double alpha, beta;
  bool rounds_partial_sums;

  double element(const Layout& l, const void* p, int64_t batch, int64_t row, int64_t col) const {
    const double x = load(p, l.type, batch * l.batch_stride + col * l.ld + row);
    return op.compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? to_tf32(x) : x;
  }

  void run() const {
    const auto k = static_cast<int64_t>(op.transpose_a == CUBLAS_OP_N ? a.cols : a.rows);
    for (int64_t z = 0; z < d.batch; ++z)
      for (int64_t j = 0; j < static_cast<int64_t>(d.cols); ++j)
        for (int64_t i = 0; i < static_cast<int64_t>(d.rows); ++i) {
          double sum = 0;
          for (int64_t l = 0; l < k; ++l) {
            if (l == k / 2 && rounds_partial_sums) sum = rounded(sum, d.type);
            sum +=
                (op.transpose_a == CUBLAS_OP_N ? element(a, pa, z, i, l)
                                               : element(a, pa, z, l, i)) *
                (op.transpose_b == CUBLAS_OP_N ? element(b, pb, z, l, j) : element(b, pb, z, j, l));
          }
          sum *= alpha;
          if (beta != 0) sum += beta * load(pc, c.type, z * c.batch_stride + j * c.ld + i);
          if (op.epilogue & CUBLASLT_EPILOGUE_BIAS) sum += load(op.bias, d.type, i);
          if (op.epilogue & CUBLASLT_EPILOGUE_RELU) sum = std::max(sum, 0.0);
          store(pd, d.type, z * d.batch_stride + j * d.ld + i, sum);
        }
  }
};

}  // namespace

extern "C" {

#define API __attribute__((visibility("default")))

API size_t cublasLtGetVersion() { return CUBLAS_VERSION; }
API const char* cublasLtGetStatusString(cublasStatus_t) {
  return "refused by the stand-in for cuBLASLt";
}
API cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(new char);
  return CUBLAS_STATUS_SUCCESS;
}
API cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<char*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

API cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* d, cudaDataType type,
                                              uint64_t rows, uint64_t cols, int64_t ld) {
  *d = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{type, rows, cols, ld});
  return CUBLAS_STATUS_SUCCESS;
}
API cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t d) {
  return delete &of(d), CUBLAS_STATUS_SUCCESS;
}
API cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t d,
                                                    cublasLtMatrixLayoutAttribute_t which,
                                                    const void* value, size_t bytes) {
  switch (which) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      return read(of(d).batch, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return read(of(d).batch_stride, value, bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

API cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* d, cublasComputeType_t compute,
                                            cudaDataType_t scale) {
  *d = reinterpret_cast<cublasLtMatmulDesc_t>(new Operation{compute, scale});
  return CUBLAS_STATUS_SUCCESS;
}
API cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) {
  return delete &of(d), CUBLAS_STATUS_SUCCESS;
}
API cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
                                                  cublasLtMatmulDescAttributes_t which,
                                                  const void* value, size_t bytes) {
  switch (which) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return read(of(d).transpose_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return read(of(d).transpose_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return read(of(d).epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return read(of(d).bias, value, bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

API cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* d) {
  *d = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
  return CUBLAS_STATUS_SUCCESS;
}
API cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t d) {
  return delete &of(d), CUBLAS_STATUS_SUCCESS;
}
API cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t d,
                                                        cublasLtMatmulPreferenceAttributes_t which,
                                                        const void* value, size_t bytes) {
  switch (which) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return read(of(d).workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return read(of(d).reduction, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return read(of(d).alignment[which - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], value,
                  bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

API cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference, int wanted, cublasLtMatmulHeuristicResult_t* results,
    int* found) {
  *found = 0;
  if (!handle || wanted < 1) return CUBLAS_STATUS_INVALID_VALUE;
  auto& op = of(operation);
  if (!fit_together(op, of(a), of(b), of(c), of(d))) return CUBLAS_STATUS_INVALID_VALUE;
  // So that the way without the epilogue is walked too.
  if ((op.epilogue & CUBLASLT_EPILOGUE_BIAS) && of(d).type == CUDA_R_64F)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if ((op.epilogue & CUBLASLT_EPILOGUE_BIAS) && of(preference).alignment[3] < 16 &&
      refuses_narrow_bias())
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (of(preference).workspace < kWorkspaceBytes) return CUBLAS_STATUS_NOT_SUPPORTED;
  const auto bias = reinterpret_cast<uintptr_t>(op.bias);
  Promise promise{};
  std::copy_n(of(preference).alignment, 4, promise.alignment);
  promise.bias_alignment = static_cast<uint32_t>(bias & (~bias + 1));
  promise.rounds_partial_sums = of(preference).reduction & (CUBLASLT_REDUCTION_SCHEME_INPLACE |
                                                            CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE);
  results[0] = {};
  std::memcpy(&results[0].algo, &promise, sizeof promise);
  results[0].workspaceSize = kWorkspaceBytes;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

API cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                  const void* alpha, const void* pa, cublasLtMatrixLayout_t a,
                                  const void* pb, cublasLtMatrixLayout_t b, const void* beta,
                                  const void* pc, cublasLtMatrixLayout_t c, void* pd,
                                  cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t* algo,
                                  void* workspace, size_t bytes, cudaStream_t stream) {
  auto& op = of(operation);
  if (!handle || !algo || !fit_together(op, of(a), of(b), of(c), of(d)))
    return CUBLAS_STATUS_INVALID_VALUE;
  Promise promise;
  std::memcpy(&promise, algo, sizeof promise);
  const void* pointers[] = {pa, pb, pc, pd};
  for (int i = 0; i < 4; ++i)
    if (!pointers[i] || !is_aligned(pointers[i], promise.alignment[i]))
      return CUBLAS_STATUS_INVALID_VALUE;
  const bool bias = op.epilogue & CUBLASLT_EPILOGUE_BIAS;
  if (bias && (!op.bias || !promise.bias_alignment || !is_aligned(op.bias, promise.bias_alignment)))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (bytes < kWorkspaceBytes || !workspace || !is_aligned(workspace, 256))
    return CUBLAS_STATUS_INVALID_VALUE;
  const bool f64 = op.scale == CUDA_R_64F;
  auto number = [&](const void* p) {
    return f64 ? *static_cast<const double*>(p) : *static_cast<const float*>(p);
  };
  const Job job{op, of(a), of(b), of(c),         of(d),        pa,
                pb, pc,    pd,    number(alpha), number(beta), promise.rounds_partial_sums};
  auto task = [=] {
    std::memset(workspace, 0xff, kWorkspaceBytes);
    job.run();
  };
  if (!stream) return CUBLAS_STATUS_INVALID_VALUE;
  return stream->queue(stream, task) == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                                                    : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
