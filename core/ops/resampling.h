// Images, lines and volumes at other resolutions and other places. x has a batch, channels and one
// to three dimensions of space: (n, c, l), (n, c, h, w) or (n, c, d, h, w). Every function throws a
// ShapeError for another shape, a DTypeError for another dtype, and a ValueError for an undefined
// tensor or an option outside its range.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/core/tensor.h>

namespace tenon {

// ---- another size ----

struct InterpolateOptions {
  // The result's size in space, or how much larger than x it is: one number for each dimension, or
  // one for all. Exactly one of both is given. Of a factor the size is floor(size scale_factor).
  Shape size = {};
  std::vector<double> scale_factor = {};
  // How values are taken. Of any dtype:
  //   "nearest"        the element at floor(i / factor)
  //   "nearest-exact"  the element at floor((i + 0.5) / factor)
  // For floating dtypes:
  //   "linear", "bilinear", "trilinear"  in one, two or three dimensions, between two elements
  //   "bicubic"                          in two, between four (a = -0.75)
  //   "area"                             averages, as adaptive_avg_pool2d
  //   "lanczos"                          in two, with antialias alone: sinc(x) sinc(x / 3)
  std::string mode = "nearest";
  // Linear and cubic modes alone: whether the outermost elements of x and of the result lie on each
  // other, instead of the outer edges of these elements. By default they do not.
  std::optional<bool> align_corners = std::nullopt;
  // Whether coordinates follow from the two sizes alone; otherwise they follow from scale_factor,
  // where that is given.
  bool recompute_scale_factor = false;
  // Whether a smaller result averages over all elements below each of its own, as Pillow does: for
  // "bilinear", "bicubic" (then a = -0.5) and "lanczos" in two dimensions.
  bool antialias = false;
};

// Returns x at another size, as torch.nn.functional.interpolate does. Coordinates are computed on
// the host, from sizes alone.
TENON_API Tensor interpolate(const Tensor& x, const InterpolateOptions& options);
// Returns the same: an older name.
TENON_API Tensor upsample(const Tensor& x, const InterpolateOptions& options);

// ---- other places ----

struct GridSampleOptions {
  // "bilinear" (in volumes trilinear), "nearest" (of two equally near the even one) or "bicubic" (a
  // = -0.75; images alone).
  std::string_view mode = "bilinear";
  // What lies outside of x: "zeros", "border" (the nearest element of x) or "reflection".
  std::string_view padding_mode = "zeros";
  // Whether -1 and 1 are the centres of the outermost elements, instead of their outer edges.
  bool align_corners = false;
};

// Returns x (n, c, h, w) at the places that grid (n, h', w', 2) says: the last dimension is (x, y),
// where -1 and 1 are the borders of x; shape (n, c, h', w'). Of a volume (n, c, d, h, w) the grid
// is (n, d', h', w', 3), (x, y, z). NaN is a place outside of x. Both tensors have one floating
// dtype and a gradient; that of the grid is 0 for "nearest".
TENON_API Tensor grid_sample(const Tensor& x, const Tensor& grid,
                             const GridSampleOptions& options = {});

// Returns the grid of grid_sample that the affine matrices theta make of a result of shape `size`:
// of (n, 2, 3) and size (n, c, h, w) the grid (n, h, w, 2), of (n, 3, 4) and size (n, c, d, h, w)
// the grid (n, d, h, w, 3). theta is floating.
TENON_API Tensor affine_grid(const Tensor& theta, const Shape& size, bool align_corners = false);

// ---- channels, of any dtype ----

// Returns x (…, c r^2, h, w), where r is upscale_factor, with its channels as pixels: shape
// (…, c, h r, w r) (Shi et al., arXiv:1609.05158).
TENON_API Tensor pixel_shuffle(const Tensor& x, int64_t upscale_factor);
// Returns the reverse: of x (…, c, h r, w r), where r is downscale_factor, shape (…, c r^2, h, w).
TENON_API Tensor pixel_unshuffle(const Tensor& x, int64_t downscale_factor);
// Returns x (n, c, …) with the channels of `groups` groups mixed: first those that are the first of
// their group, then the second, and so on (Zhang et al., arXiv:1707.01083). Throws a ShapeError
// unless `groups` divides c.
TENON_API Tensor channel_shuffle(const Tensor& x, int64_t groups);

}  // namespace tenon
