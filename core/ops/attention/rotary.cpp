// rotary_embedding (core/ops/attention.h).
#include <cmath>

#include <tenon/core/base/number_text.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/attention.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

Tensor rotary_embedding(const Tensor& x, double base, int64_t offset, bool interleaved) {
  require_tensor("rotary_embedding", x);
  const Shape& shape = shape_of(x);
  if (shape.size() < 2 || shape[shape.size() - 1] % 2)
    throw ShapeError(fmt::format(
        "rotary_embedding: needs an input (…, n, d) with an even d, found shape {}", shape));
  if (!is_floating_point(dtype_of(x)))
    throw DTypeError(fmt::format("rotary_embedding: needs a floating input, found {}; {}",
                                 dtype_of(x), conversion_to(f32)));
  if (!(base > 0) || !std::isfinite(base))
    throw ValueError(
        fmt::format("rotary_embedding: base must be above 0, found {}", number_text(base)));
  const int64_t n = shape[shape.size() - 2], d = shape[shape.size() - 1], half = d / 2;
  // Angles of late rows need more digits than f32 has.
  const TensorOptions exact = {.dtype = f64, .device = x.device()};
  const Tensor rows = arange(0, n, 1, exact) + static_cast<double>(offset);
  const Tensor rates =
      exp(arange(0, half, 1, exact) * (-2 * std::log(base) / static_cast<double>(d)));
  const Tensor angle = rows.unsqueeze(1) * rates;
  const DType dtype = computation_type(dtype_of(x));
  const Tensor c = cos(angle).to(dtype), s = sin(angle).to(dtype), wide = x.to(dtype);
  const Tensor a = interleaved ? wide.slice(-1, 0, d, 2) : wide.narrow(-1, 0, half),
               b = interleaved ? wide.slice(-1, 1, d, 2) : wide.narrow(-1, half, half);
  const Tensor first = a * c - b * s, second = a * s + b * c;
  const Tensor y =
      interleaved ? stack({first, second}, -1).reshape(shape) : cat({first, second}, -1);
  return y.to(dtype_of(x));
}

}  // namespace tenon
