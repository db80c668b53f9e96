// What batch_norm and layer_norm share. Not installed.
#pragma once

#include <span>

#include <tenon/core/dispatch/op.h>

namespace tenon {

// The gradients of x, weight and bias by one operator (g, x, weight?, mean, invstd), for a forward
// (x, weight?, bias?, …) that keeps mean and invstd as its outputs 1 and 2. Those that nobody needs
// stay undefined.
inline void fused_gradient(const Op& backward, const GradContext& c, const Attrs& attrs,
                           std::span<Tensor> g) {
  const Tensor& weight = c.input(1);
  const Tensor* inputs[] = {&c.grad(), &c.input(0), weight.defined() ? &weight : nullptr,
                            &c.output(1), &c.output(2)};
  uint32_t wanted = 0;
  for (size_t i = 0; i < 3; ++i) wanted |= static_cast<uint32_t>(c.needs(i)) << i;
  auto grads = run_all({backward, inputs, attrs, {}, wanted});
  for (size_t i = 0; i < 3; ++i) g[i] = grads[i];
}

}  // namespace tenon
