// local_response_norm and weight_norm (core/ops/normalization.h).
#include <algorithm>

#include <tenon/core/dispatch/widening.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/normalization.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

// Sums of `size` neighbouring channels, from size / 2 before each one on; there are zeros outside.
Tensor sum_of_channels(const Tensor& x, int64_t size) {
  Shape edge = shape_of(x);
  const int64_t channels = edge[1], before = size / 2;
  // More than all channels at one side never matter.
  const int64_t first = std::max(-before, 1 - channels);
  const int64_t last = std::min(size - 1 - before, channels - 1);
  edge[1] = std::max(-first, last);
  const Tensor zero = zeros(edge, {.dtype = dtype_of(x), .device = x.device()});
  const Tensor padded = cat({zero, x, zero}, 1);
  Tensor sum = padded.narrow(1, edge[1] + first, channels);
  for (int64_t i = first + 1; i <= last; ++i) sum = sum + padded.narrow(1, edge[1] + i, channels);
  return sum;
}

}  // namespace

Tensor local_response_norm(const Tensor& x, int64_t size, double alpha, double beta, double k) {
  require_tensor("local_response_norm", x);
  if (shape_of(x).size() < 3)
    throw ShapeError(
        fmt::format("local_response_norm: needs an input (n, c, …), found shape {}", shape_of(x)));
  if (size < 1)
    throw ValueError(fmt::format("local_response_norm: size must be at least 1, found {}", size));
  if (!is_floating_point(dtype_of(x)))
    throw DTypeError(fmt::format("local_response_norm: needs a floating input, found {}; {}",
                                 dtype_of(x), conversion_to(f32)));
  if (shape_of(x).numel() == 0) return x.clone();
  if (const Widening wide{&x})
    return wide.rounded(local_response_norm(wide(x), size, alpha, beta, k));
  const Tensor mean = sum_of_channels(square(x), size) * (alpha / static_cast<double>(size));
  return x / pow(mean + k, beta);
}

Tensor weight_norm(const Tensor& v, const Tensor& g, int64_t dim) try {
  require_tensor("weight_norm", v, "v");
  require_tensor("weight_norm", g, "g");
  if (const Widening wide{&v, &g}) return wide.rounded(weight_norm(wide(v), wide(g), dim));
  const auto rank = static_cast<int64_t>(shape_of(v).size());
  Shape dims;
  for (int64_t d = 0; d < rank; ++d)
    if (dim == -1 || d != wrap_dim_of(v, dim, "weight_norm")) dims.push_back(d);
  // Without dimensions each element is the only one of its slice.
  const Tensor length = dims.empty() ? abs(v) : norm(v, 2, dims, dim != -1);
  if (!(shape_of(g) == shape_of(length)))
    throw ShapeError(fmt::format("weight_norm: g has shape {}, but must be {} for a v of shape {}",
                                 shape_of(g), shape_of(length), shape_of(v)));
  return v * (g / length);
} catch (const Error&) {
  rethrow_in("weight_norm");
}

}  // namespace tenon
