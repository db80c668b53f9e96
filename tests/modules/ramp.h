// Tensors and parameters with simple values, for comparisons with PyTorch.
#pragma once

#include <tenon/tenon.h>

namespace tenon::test {

// -0.5, -0.4, … in f64.
inline Tensor ramp(const Shape& shape) {
  return (arange(shape.numel(), f64) * 0.1 - 0.5).reshape(shape);
}

// Returns the module with every parameter set to a ramp.
template <class M>
M filled(M module) {
  for (Tensor& p : module.parameters()) no_grad([&] { p.copy_(ramp(p.shape())); });
  return module;
}

}  // namespace tenon::test
