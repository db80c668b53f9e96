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
  narrow_ = choose(static_cast<uint32_t>(sdk::dtype_size(p_.dtype)));
  wide_ = choose(kWideAlignment);
  if (!narrow_ && !wide_)
    sdk::unsupported("cuBLASLt has no algorithm for {} products of ({}, {}) by ({}, {}) in {}",
                     p_.batch, p_.m, p_.k, p_.k, p_.n, sdk::dtype_name(p_.dtype));
}

std::optional<Gemm::Choice> Gemm::choose(uint32_t alignment) const {
  if (p_.bias)
    if (auto choice = ask(alignment, true)) return choice;
  return ask(alignment, false);
}

std::optional<Gemm::Choice> Gemm::ask(uint32_t alignment, bool adds_bias) const {
  Choice choice{blas::operation_of(p_, adds_bias), adds_bias, {}};
  // The heuristic reads the bias's alignment off its pointer and does not follow it.
  if (adds_bias)
    blas::set_bias(choice.operation, reinterpret_cast<const void*>(uintptr_t{alignment}));
  const auto preference = blas::preference_of(p_, workspace_limit_, alignment);
  int count = 0;
  const auto status = cublaslt().cublasLtMatmulAlgoGetHeuristic(
      handle_, choice.operation.get(), b_.get(), a_.get(), y_.get(), y_.get(), preference.get(), 1,
      &choice.algorithm, &count);
  // Both mean that there is none.
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE)
    return std::nullopt;
  check(status, "cublasLtMatmulAlgoGetHeuristic");
  if (count < 1 || choice.algorithm.state != CUBLAS_STATUS_SUCCESS) return std::nullopt;
  return choice;
}

uint64_t Gemm::workspace_bytes() const {
  const auto bytes = [](const std::optional<Choice>& choice) {
    return choice ? choice->algorithm.workspaceSize : size_t{0};
  };
  return padded_workspace(std::max(bytes(wide_), bytes(narrow_)));
}

const Gemm::Choice& Gemm::choice_for(const tn_run& run) const {
  auto wide = [](const void* p) { return reinterpret_cast<uintptr_t>(p) % kWideAlignment == 0; };
  if (wide_ && wide(run.inputs[0]) && wide(run.inputs[1]) && wide(run.outputs[0]) &&
      (!wide_->adds_bias || wide(run.inputs[2])))
    return *wide_;
  if (!narrow_)
    sdk::unsupported(
        "cuBLASLt has no algorithm for this product where an operand does not start at a "
        "multiple of 16 bytes; "
        "copy the view with clone()");
  return *narrow_;
}

void Gemm::run(const tn_run& run) const {
  const void *a = run.inputs[0], *b = run.inputs[1];
  void* y = run.outputs[0];
  const Choice& chosen = choice_for(run);
  const bool bias_in_y = p_.bias && !chosen.adds_bias;
  if (chosen.adds_bias) blas::set_bias(chosen.operation, run.inputs[2]);
  if (bias_in_y) apply_bias(run.stream, BiasMode::set, run.inputs[2], y, p_.m, p_.n, 1, p_.dtype);
  // In the type of the scale, on the host.
  const float one = 1, beta = bias_in_y ? 1 : 0;
  const double one64 = one, beta64 = beta;
  const bool f64 = p_.dtype == TN_F64;
  queue_by_library(run.stream, [&] {
    check(cublaslt().cublasLtMatmul(
              handle_, chosen.operation.get(), f64 ? static_cast<const void*>(&one64) : &one, b,
              b_.get(), a, a_.get(), f64 ? static_cast<const void*>(&beta64) : &beta, y, y_.get(),
              y, y_.get(), &chosen.algorithm.algo, aligned_workspace(run.workspace),
              chosen.algorithm.workspaceSize, run.stream->handle),
          "cublasLtMatmul");
  });
}

}  // namespace tenon::cuda
