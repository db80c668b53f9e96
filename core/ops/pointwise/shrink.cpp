// Activations that are made of other operators (core/ops/activation.h).
#include <tenon/core/base/number_text.h>
#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/activation.h>
#include <tenon/core/ops/normalization.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

Tensor floating(const char* op, const Tensor& x) {
  require_tensor(op, x);
  return is_floating_point(dtype_of(x)) ? x : x.to(DType::f32);
}

// Whether int64 has the number, which a conversion to it requires.
bool is_whole(double number) {
  return number >= -0x1p63 && number < 0x1p63 &&
         static_cast<double>(static_cast<int64_t>(number)) == number;
}

}  // namespace

Tensor hardtanh(const Tensor& x, double min_val, double max_val) try {
  require_tensor("hardtanh", x);
  if (min_val > max_val)
    throw ValueError(fmt::format("hardtanh: min_val {} is above max_val {}", number_text(min_val),
                                 number_text(max_val)));
  if (is_whole(min_val) && is_whole(max_val) && !is_floating_point(dtype_of(x)))
    return clamp(x, static_cast<int64_t>(min_val), static_cast<int64_t>(max_val));
  return clamp(x, min_val, max_val);
} catch (const Error&) {
  rethrow_in("hardtanh");
}

Tensor relu6(const Tensor& x) try {
  require_tensor("relu6", x);
  return is_floating_point(dtype_of(x)) ? clamp(x, 0.0, 6.0) : clamp(x, 0, 6);
} catch (const Error&) {
  rethrow_in("relu6");
}

Tensor hardshrink(const Tensor& x, double lambd) {
  const Tensor wide = floating("hardshrink", x);
  return where(le(abs(wide.detach()), lambd), 0.0, wide);
}

Tensor softshrink(const Tensor& x, double lambd) {
  if (!(lambd >= 0))
    throw ValueError(
        fmt::format("softshrink: lambd must not be below 0, found {}", number_text(lambd)));
  const Tensor wide = floating("softshrink", x);
  const Tensor moved = where(gt(wide, 0.0), wide - lambd, wide + lambd);
  return where(le(abs(wide.detach()), lambd), 0.0, moved);
}

Tensor threshold(const Tensor& x, double threshold, double value) {
  const Tensor wide = floating("threshold", x);
  return where(le(wide, threshold), value, wide);
}

Tensor tanhshrink(const Tensor& x) {
  const Tensor wide = floating("tanhshrink", x);
  return wide - tanh(wide);
}

Tensor softsign(const Tensor& x) {
  const Tensor wide = floating("softsign", x);
  return wide / (abs(wide) + 1.0);
}

Tensor prelu(const Tensor& x, const Tensor& weight) try {
  if (const Autocasting cast{"prelu", {&x, &weight}}) return prelu(cast(x), cast(weight));
  require_defined("prelu", {{"x", x}, {"weight", weight}});
  const Shape& shape = shape_of(x);
  const int64_t count = shape_of(weight).numel();
  if (shape_of(weight).size() > 1)
    throw ShapeError(fmt::format(
        "prelu: the weight must have one dimension or none, found shape {}", shape_of(weight)));
  if (dtype_of(x) != dtype_of(weight))
    throw DTypeError(fmt::format("prelu: x is {}, the weight {}; {}", dtype_of(x), dtype_of(weight),
                                 conversion_to(dtype_of(x), "the weight")));
  Shape aligned = Shape::filled(shape.size(), 1);
  if (count != 1) {
    const int64_t channels = shape.size() > 1 ? shape[1] : 1;
    if (count != channels)
      throw ShapeError(fmt::format(
          "prelu: x of shape {} has {} channels, so the weight needs as many elements or one; "
          "found {}",
          shape, channels, count));
    aligned[1] = count;
  }
  const Tensor slopes = weight.reshape(aligned);
  const Tensor above = gt(x, 0.0);
  // An infinite element above 0 has no part in the gradient of its slope.
  return where(above, x, where(above, 0.0, x) * slopes);
} catch (const Error&) {
  rethrow_in("prelu");
}

Tensor glu(const Tensor& x, int64_t dim) {
  const Tensor wide = floating("glu", x);
  const Shape& shape = shape_of(wide);
  const int64_t d = wrap_dim(dim, static_cast<int64_t>(shape.size()), "glu");
  const int64_t size = shape[static_cast<size_t>(d)];
  if (size % 2 != 0)
    throw ShapeError(
        fmt::format("glu: dimension {} of shape {} must have an even size to be halved, found {}",
                    d, shape, size));
  return wide.narrow(d, 0, size / 2) * sigmoid(wide.narrow(d, size / 2, size / 2));
}

Tensor softmin(const Tensor& x, int64_t dim) try {
  return softmax(neg(x), dim);
} catch (const Error&) {
  rethrow_in("softmin");
}

}  // namespace tenon
