#include "vendor/blas.h"

namespace tenon::cuda {
namespace blas {
namespace {

template <class T>
void set(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t which, T value) {
  check(cublaslt().cublasLtMatmulDescSetAttribute(d, which, &value, sizeof value),
        "cublasLtMatmulDescSetAttribute");
}
template <class T>
void set(cublasLtMatrixLayout_t d, cublasLtMatrixLayoutAttribute_t which, T value) {
  check(cublaslt().cublasLtMatrixLayoutSetAttribute(d, which, &value, sizeof value),
        "cublasLtMatrixLayoutSetAttribute");
}
template <class T>
void set(cublasLtMatmulPreference_t d, cublasLtMatmulPreferenceAttributes_t which, T value) {
  check(cublaslt().cublasLtMatmulPreferenceSetAttribute(d, which, &value, sizeof value),
        "cublasLtMatmulPreferenceSetAttribute");
}

cudaDataType_t data_type(tn_dtype t) {
  return t == TN_F64    ? CUDA_R_64F
         : t == TN_F16  ? CUDA_R_16F
         : t == TN_BF16 ? CUDA_R_16BF
                        : CUDA_R_32F;
}

}  // namespace

Layout layout_of(const Product& p, const Matrix& matrix) {
  cublasLtMatrixLayout_t raw = nullptr;
  check(cublaslt().cublasLtMatrixLayoutCreate(&raw, data_type(p.dtype), matrix.rows, matrix.cols,
                                              matrix.ld),
        "cublasLtMatrixLayoutCreate");
  Layout layout(raw);
  set(raw, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(p.batch));
  set(raw, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, matrix.batch_stride);
  return layout;
}

Layout result_layout(const Product& p) {
  return layout_of(
      p, {static_cast<uint64_t>(p.n), static_cast<uint64_t>(p.m), p.n, p.m * p.n, CUBLAS_OP_N});
}

Operation operation_of(const Product& p, bool fuse_bias) {
  const bool f64 = p.dtype == TN_F64;
  const auto compute = f64      ? CUBLAS_COMPUTE_64F
                       : p.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                : CUBLAS_COMPUTE_32F;
  cublasLtMatmulDesc_t raw = nullptr;
  check(cublaslt().cublasLtMatmulDescCreate(&raw, compute, f64 ? CUDA_R_64F : CUDA_R_32F),
        "cublasLtMatmulDescCreate");
  Operation operation(raw);
  set(raw, CUBLASLT_MATMUL_DESC_TRANSA, static_cast<int32_t>(p.b.op));
  set(raw, CUBLASLT_MATMUL_DESC_TRANSB, static_cast<int32_t>(p.a.op));
  uint32_t epilogue = 0;
  if (p.relu) epilogue |= CUBLASLT_EPILOGUE_RELU;
  if (fuse_bias) epilogue |= CUBLASLT_EPILOGUE_BIAS;
  set(raw, CUBLASLT_MATMUL_DESC_EPILOGUE,
      epilogue ? epilogue : uint32_t{CUBLASLT_EPILOGUE_DEFAULT});
  return operation;
}

void set_bias(const Operation& operation, const void* bias) {
  set(operation.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
}

Preference preference_of(const Product& p, uint64_t workspace_bytes, uint32_t alignment) {
  cublasLtMatmulPreference_t raw = nullptr;
  check(cublaslt().cublasLtMatmulPreferenceCreate(&raw), "cublasLtMatmulPreferenceCreate");
  Preference preference(raw);
  set(raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
  // Partial sums are never rounded to f16 or bf16. The other schemes keep them in the type of the
  // result, "in place" too.
  const bool is_half = p.dtype == TN_F16 || p.dtype == TN_BF16;
  set(raw, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<uint32_t>(is_half ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE
                                    : CUBLASLT_REDUCTION_SCHEME_MASK));
  for (auto which :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set(raw, which, alignment);
  return preference;
}

}  // namespace blas
}  // namespace tenon::cuda
