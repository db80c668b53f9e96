// rms_norm (core/ops/normalization.h).
#include <tenon/core/base/number_text.h>
#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/normalization.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

Tensor rms_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight,
                std::optional<double> eps) {
  if (const Autocasting cast{"rms_norm", {&x, &weight}})
    return rms_norm(cast(x), normalized_shape, cast(weight), eps);
  require_tensor("rms_norm", x);
  const Shape& shape = shape_of(x);
  const DType dtype = dtype_of(x);
  if (!is_floating_point(dtype))
    throw DTypeError(
        fmt::format("rms_norm: needs a floating input, found {}; {}", dtype, conversion_to(f32)));
  if (eps) require_not_negative("rms_norm", "eps", *eps);
  const size_t count = normalized_shape.size();
  if (count == 0 || count > shape.size() || !(Shape(shape.span().last(count)) == normalized_shape))
    throw ShapeError(fmt::format(
        "rms_norm: normalized_shape {} must be the last dimensions of the input, of which there is "
        "at least one; the input has shape {}",
        normalized_shape, shape));
  if (weight.defined() && !(shape_of(weight) == normalized_shape))
    throw ShapeError(fmt::format("rms_norm: weight has shape {}, but normalized_shape is {}",
                                 shape_of(weight), normalized_shape));
  Shape dims;
  for (size_t d = shape.size() - count; d < shape.size(); ++d)
    dims.push_back(static_cast<int64_t>(d));
  const Tensor wide = x.to(computation_type(dtype));
  Tensor y = wide * rsqrt(mean(square(wide), dims, true) + eps.value_or(epsilon_of(dtype)));
  if (weight.defined()) y = y * weight.to(wide.dtype());
  return y.to(dtype);
}

}  // namespace tenon
