// Values for finite differences, and for tests that want to know what they compute with.
#pragma once

#include <cmath>
#include <vector>

#include <tenon/core/ops/pointwise.h>
#include <tenon/core/tensor.h>

namespace tenon::conformance {

// Values in f64 that repeat nowhere, change sign and stay away from 0 and from whole numbers: kinks
// are not between two samples.
inline Tensor sample(const Shape& shape, double phase = 0.3) {
  std::vector<double> values(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < values.size(); ++i) {
    double v = std::sin(1.7 * static_cast<double>(i) + phase) * 1.4;
    values[i] = v + (v < 0 ? -0.11 : 0.11);
  }
  return tensor(values, shape);
}
inline Tensor positive(const Shape& shape, double phase = 0.3) {
  return abs(sample(shape, phase)) + 0.2;
}

}  // namespace tenon::conformance
