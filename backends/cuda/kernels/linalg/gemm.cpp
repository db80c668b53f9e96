#include "kernels/linalg/gemm.h"

#include <algorithm>
#include <string>

#include "kernels/linalg/bias.h"
#include "runtime/common.h"
#include "vendor/vendor.h"

namespace tenon::cuda {
namespace {
constexpr uint32_t kWideAlignment = 16;
}

Gemm::Gemm(tn_device* device, const Product& product)
    : p_(product), workspace_limit_(device->capability >= 90 ? 32u << 20 : 8u << 20) {
  CurrentDevice current(device);
  handle_ = handles_of(device).blas();
  a_ = blas::layout_of(p_, p_.a);
  b_ = blas::layout_of(p_, p_.b);
  y_ = blas::result_layout(p_);
  fused_bias_ = p_.bias && choose(true);
  if (!fused_bias_ && !choose(false))
    sdk::unsupported("cuBLASLt has no algorithm for {} products of ({}, {}) by ({}, {}) in {}",
                     p_.batch, p_.m, p_.k, p_.k, p_.n, sdk::dtype_name(p_.dtype));
}

bool Gemm::choose(bool fuse_bias) {
  operation_ = blas::operation_of(p_, fuse_bias);
  auto ask_for = [&](uint32_t alignment) {
    // The heuristic reads the bias's alignment off its pointer and does not follow it.
    if (fuse_bias) blas::set_bias(operation_, reinterpret_cast<const void*>(uintptr_t{alignment}));
    return ask(alignment);
  };
  narrow_ = ask_for(static_cast<uint32_t>(sdk::dtype_size(p_.dtype)));
  wide_ = ask_for(kWideAlignment);
  if (!wide_) wide_ = narrow_;
  return wide_.has_value();
}

std::optional<Gemm::Choice> Gemm::ask(uint32_t alignment) const {
  const auto preference = blas::preference_of(workspace_limit_, alignment);
  Choice result{};
  int count = 0;
  const auto status = cublaslt().cublasLtMatmulAlgoGetHeuristic(
      handle_, operation_.get(), b_.get(), a_.get(), y_.get(), y_.get(), preference.get(), 1,
      &result, &count);
  // Both mean that there is none.
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE)
    return std::nullopt;
  check(status, "cublasLtMatmulAlgoGetHeuristic");
  if (count < 1 || result.state != CUBLAS_STATUS_SUCCESS) return std::nullopt;
  return result;
}

uint64_t Gemm::workspace_bytes() const {
  return padded_workspace(
      std::max(wide_->workspaceSize, narrow_ ? narrow_->workspaceSize : size_t{0}));
}

void Gemm::run(const tn_run& run) const {
  const void *a = run.inputs[0], *b = run.inputs[1], *bias = p_.bias ? run.inputs[2] : nullptr;
  void* y = run.outputs[0];
  if (fused_bias_) blas::set_bias(operation_, bias);
  if (p_.bias && !fused_bias_)
    apply_bias(run.stream, BiasMode::set, bias, y, p_.m, p_.n, 1, p_.dtype);

  auto wide = [](const void* p) { return reinterpret_cast<uintptr_t>(p) % kWideAlignment == 0; };
  const auto& chosen =
      wide(a) && wide(b) && wide(y) && (!fused_bias_ || wide(bias)) ? wide_ : narrow_;
  if (!chosen)
    sdk::unsupported(
        "cuBLASLt has no algorithm for this product where an operand does not start at a "
        "multiple of 16 bytes; "
        "copy the view with clone()");
  // In the type of the scale, on the host.
  const float one = 1, beta = p_.bias && !fused_bias_ ? 1 : 0;
  const double one64 = one, beta64 = beta;
  const bool f64 = p_.dtype == TN_F64;
  check(cublaslt().cublasLtMatmul(
            handle_, operation_.get(), f64 ? static_cast<const void*>(&one64) : &one, b, b_.get(),
            a, a_.get(), f64 ? static_cast<const void*>(&beta64) : &beta, y, y_.get(), y, y_.get(),
            &chosen->algo, aligned_workspace(run.workspace), chosen->workspaceSize,
            run.stream->handle),
        "cublasLtMatmul");
}

}  // namespace tenon::cuda
