// Values for finite differences, and for tests that want to know what they compute with.
#pragma once

#include <cmath>
#include <vector>

#include <tenon/core/tensor.h>

namespace tenon::conformance {

// Numbers that repeat nowhere, change sign and stay away from 0 and from whole numbers: kinks are
// not between two samples.
inline std::vector<double> sample_values(size_t count, double phase = 0.3) {
  std::vector<double> values(count);
  for (size_t i = 0; i < values.size(); ++i) {
    double v = std::sin(1.7 * static_cast<double>(i) + phase) * 1.4;
    values[i] = v + (v < 0 ? -0.11 : 0.11);
  }
  return values;
}

// The same as tensors in f64; the host computes them.
inline Tensor sample(const Shape& shape, double phase = 0.3) {
  return tensor(sample_values(static_cast<size_t>(shape.numel()), phase), shape);
}
inline Tensor positive(const Shape& shape, double phase = 0.3) {
  auto values = sample_values(static_cast<size_t>(shape.numel()), phase);
  for (double& v : values) v = std::abs(v) + 0.2;
  return tensor(values, shape);
}
inline Tensor near_one(const Shape& shape, double phase = 0.3) {
  auto values = sample_values(static_cast<size_t>(shape.numel()), phase);
  for (double& v : values) v = v * 0.1 + 1;
  return tensor(values, shape);
}

}  // namespace tenon::conformance
