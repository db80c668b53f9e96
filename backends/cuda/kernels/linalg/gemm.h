// One product of matrices by cuBLASLt, prepared.
#pragma once

#include <cstdint>
#include <optional>

#include <tenon/plugins/abi/abi.h>

#include "vendor/blas.h"

namespace tenon::cuda {

class Gemm {
 public:
  // Chooses the algorithms. Throws TN_CODE_UNSUPPORTED where cuBLASLt has none.
  Gemm(tn_device* device, const Product& product);
  uint64_t workspace_bytes() const;
  // Inputs a, b, bias; output y.
  void run(const tn_run& run) const;

 private:
  struct Choice {
    blas::Operation operation;
    bool adds_bias;  // in its epilogue; otherwise the bias lies in y before
    cublasLtMatmulHeuristicResult_t algorithm;
  };
  std::optional<Choice> choose(uint32_t alignment) const;
  std::optional<Choice> ask(uint32_t alignment, bool adds_bias) const;
  const Choice& choice_for(const tn_run& run) const;

  Product p_;
  cublasLtHandle_t handle_ = nullptr;  // the device's
  blas::Layout a_, b_, y_;
  // Views start anywhere, so no alignment of a pointer is certain when the plan is made: the best
  // algorithm for operands that are aligned as whole allocations are, and one that takes any
  // element's address.
  std::optional<Choice> wide_, narrow_;
  uint64_t workspace_limit_;
};

}  // namespace tenon::cuda
