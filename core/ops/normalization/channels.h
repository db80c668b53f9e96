// What the functions share that treat channels, the second dimension, differently.
#pragma once

#include <tenon/core/ops/pointwise.h>
#include <tenon/core/tensor.h>

namespace tenon {

// Returns (c) as (1, c, 1, …), so that it broadcasts along the channels of an x of this shape.
inline Tensor by_channel(const Tensor& values, const Shape& x) {
  Shape shape = Shape::filled(x.size(), 1);
  shape[1] = x[1];
  return values.reshape(shape);
}

// Returns y * weight + bias, of which each may be undefined.
inline Tensor scale_channels(Tensor y, const Tensor& weight, const Tensor& bias) {
  if (weight.defined()) y = y * by_channel(weight, y.shape());
  if (bias.defined()) y = y + by_channel(bias, y.shape());
  return y;
}

}  // namespace tenon
