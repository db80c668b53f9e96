// Products of matrices in the words of cuBLASLt. It counts in columns, Tenon in rows: a row-major
// matrix read by columns is its transpose, and y = a b becomes yᵀ = bᵀ aᵀ. So b is cuBLASLt's first
// operand and a its second.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include <tenon/plugins/abi/abi.h>

#include "vendor/library.h"

namespace tenon::cuda {

// Stored by columns: rows x cols, columns `ld` apart, one matrix of the batch `batch_stride` after
// the other; taken as `op` says.
struct Matrix {
  uint64_t rows, cols;
  int64_t ld, batch_stride;
  cublasOperation_t op;
};

// y (batch, m, n) = a b, + bias (n), then relu; y without gaps.
struct Product {
  tn_dtype dtype;
  int64_t m, n, k, batch = 1;
  Matrix a, b;  // their transposes, as cuBLASLt reads them
  bool bias = false, relu = false, tf32 = false;
};

namespace blas {

struct Destroy {
  void operator()(cublasLtMatmulDesc_t d) const { cublaslt().cublasLtMatmulDescDestroy(d); }
  void operator()(cublasLtMatrixLayout_t d) const { cublaslt().cublasLtMatrixLayoutDestroy(d); }
  void operator()(cublasLtMatmulPreference_t d) const {
    cublaslt().cublasLtMatmulPreferenceDestroy(d);
  }
};
template <class Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy>;
using Layout = Owned<cublasLtMatrixLayout_t>;
using Operation = Owned<cublasLtMatmulDesc_t>;
using Preference = Owned<cublasLtMatmulPreference_t>;

// These need the library and no device.
Layout layout_of(const Product& product, const Matrix& matrix);
Layout result_layout(const Product& product);
Operation operation_of(const Product& product, bool fuse_bias);
// Tells an operation where its bias lies.
void set_bias(const Operation& operation, const void* bias);
// `alignment` in bytes of every operand's first element.
Preference preference_of(const Product& product, uint64_t workspace_bytes, uint32_t alignment);

}  // namespace blas

}  // namespace tenon::cuda
