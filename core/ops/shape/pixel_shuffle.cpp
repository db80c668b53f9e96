// Channels as pixels, and channels in another order (core/ops/resampling.h).
#include <limits>

#include <tenon/core/extent.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/resampling.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

// Checks the input and the factor, and returns the number of images: the product of all dimensions
// before the last three.
int64_t images_of(const char* op, const Tensor& x, const char* name, int64_t factor) {
  require_tensor(op, x);
  const Shape& shape = shape_of(x);
  if (shape.size() < 3)
    throw ShapeError(fmt::format("{}: needs an input (…, c, h, w), found shape {}", op, shape));
  if (factor < 1 || factor > std::numeric_limits<int32_t>::max())
    throw ValueError(fmt::format("{}: {} must be from 1 to 2^31 - 1, found {}", op, name, factor));
  int64_t images = 1;
  for (size_t d = 0; d + 3 < shape.size(); ++d) images *= shape[d];
  return images;
}

Shape with_image(const Shape& shape, int64_t channels, int64_t height, int64_t width) {
  Shape result = shape;
  result[-3] = channels;
  result[-2] = height;
  result[-1] = width;
  return result;
}

}  // namespace

Tensor pixel_shuffle(const Tensor& x, int64_t r) {
  const int64_t images = images_of("pixel_shuffle", x, "upscale_factor", r);
  const Shape& shape = shape_of(x);
  const int64_t c = shape[-3] / (r * r), h = shape[-2], w = shape[-1];
  if (shape[-3] % (r * r) != 0)
    throw ShapeError(
        fmt::format("pixel_shuffle: the {} channels of shape {} are not a multiple of {}, the "
                    "square of upscale_factor {}",
                    shape[-3], shape, r * r, r));
  require_addressable("pixel_shuffle", {h, r});
  require_addressable("pixel_shuffle", {w, r});
  const Tensor parts = permute(reshape(x, {images, c, r, r, h, w}), {0, 1, 4, 2, 5, 3});
  return contiguous(reshape(parts, with_image(shape, c, h * r, w * r)));
}

Tensor pixel_unshuffle(const Tensor& x, int64_t r) {
  const int64_t images = images_of("pixel_unshuffle", x, "downscale_factor", r);
  const Shape& shape = shape_of(x);
  const int64_t c = shape[-3], h = shape[-2] / r, w = shape[-1] / r;
  if (shape[-2] % r != 0 || shape[-1] % r != 0)
    throw ShapeError(fmt::format(
        "pixel_unshuffle: height and width of shape {} are not multiples of downscale_factor {}",
        shape, r));
  require_addressable("pixel_unshuffle", {c, r, r});
  const Tensor parts = permute(reshape(x, {images, c, h, r, w, r}), {0, 1, 3, 5, 2, 4});
  return contiguous(reshape(parts, with_image(shape, c * r * r, h, w)));
}

Tensor channel_shuffle(const Tensor& x, int64_t groups) {
  require_tensor("channel_shuffle", x);
  const Shape& shape = shape_of(x);
  if (shape.size() < 3)
    throw ShapeError(
        fmt::format("channel_shuffle: needs an input (n, c, …) of at least three dimensions, found "
                    "shape {}",
                    shape));
  if (groups < 1)
    throw ValueError(fmt::format("channel_shuffle: groups must be positive, found {}", groups));
  if (shape[1] % groups != 0)
    throw ShapeError(
        fmt::format("channel_shuffle: the {} channels of shape {} cannot be divided into {} groups",
                    shape[1], shape, groups));
  int64_t space = 1;
  for (size_t d = 2; d < shape.size(); ++d) space *= shape[d];
  const Tensor parts = transpose(reshape(x, {shape[0], groups, shape[1] / groups, space}), 1, 2);
  return contiguous(reshape(parts, shape));
}

}  // namespace tenon
