// What the functions share that treat channels, the second dimension, differently.
#pragma once

#include <initializer_list>
#include <utility>

#include <tenon/core/format.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/rules.h>
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

// Throws unless x is floating and has at least `rank` dimensions, of which the second is that of
// the channels, and each of the others is undefined or has shape (c).
inline void require_channels(const char* op, const Tensor& x, size_t rank,
                             std::initializer_list<std::pair<const char*, const Tensor*>> others) {
  require_tensor(op, x);
  const Shape& shape = shape_of(x);
  if (!is_floating_point(dtype_of(x)))
    throw DTypeError(fmt::format("{}: needs a floating input, found {}; {}", op, dtype_of(x),
                                 conversion_to(f32)));
  if (shape.size() < rank)
    throw ShapeError(fmt::format("{}: needs an input {}, found shape {}", op,
                                 rank == 2 ? "(n, c) or (n, c, …)" : "(n, c, …)", shape));
  for (auto& [name, t] : others)
    if (t->defined() && !(shape_of(*t) == Shape{shape[1]}))
      throw ShapeError(
          fmt::format("{}: {} has shape {}, but must be ({},) for an input of shape {}", op, name,
                      shape_of(*t), shape[1], shape));
}

}  // namespace tenon
