// How a function of one tensor with floating results is described and called.
#pragma once

#include <tenon/core/ops/rules.h>

namespace tenon {

// Integers and bool become f32. The caller adds what the gradient reads.
inline OpSpec floating_function(const char* name, GradRule gradient) {
  return {
      .name = name,
      .infer = infer_floating,
      .gradient = gradient,
      .pointwise = true,
      .promotion = Promotion::floating,
  };
}

// The same, of which a half type is computed in f32 under an Autocast guard.
inline OpSpec wide_under_autocast(OpSpec spec) {
  spec.autocast = AutocastRule::f32;
  return spec;
}

inline Tensor run_function(const Op& op, const Tensor& x) {
  require_tensor(op.name, x);
  return run(op, {&x});
}

// gelu(x, "tanh"), in smooth.cpp.
Tensor gelu_by_tanh(const Tensor& x);

}  // namespace tenon
