// Images, lines and volumes at other resolutions and other places. Unless a function says
// otherwise, x has a batch, channels and one to three dimensions of space: (n, c, l), (n, c, h, w)
// or (n, c, d, h, w). The result has the dtype of x. Every function throws a ShapeError for another
// shape, a DTypeError for another dtype than it takes, and a ValueError for an undefined tensor or
// an option outside its range.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/core/tensor.h>

namespace tenon {

// ---- another size ----

// The options of interpolate. Exactly one of size and scale_factor is given, as one number for each
// dimension of space or one for all.
struct InterpolateOptions {
  Shape size = {};  // the result's size in space, at least 1
  // How many times as large as x the result is in space, above 0: its size is
  // floor(size scale_factor).
  std::vector<double> scale_factor = {};
  // How element i of the result is computed from x. For any dtype:
  //   "nearest"        the element at floor(i / factor)
  //   "nearest-exact"  the element at floor((i + 0.5) / factor)
  // For floating dtypes:
  //   "linear", "bilinear", "trilinear"  in one, two or three dimensions, from two elements in each
  //   "bicubic"                          in two dimensions, from four elements in each (a = -0.75)
  //   "area"                             by averages, as adaptive_avg_pool2d
  //   "lanczos"                          in two dimensions by sinc(x) sinc(x / 3); needs antialias
  std::string mode = "nearest";
  // Whether the outermost elements of x and of the result lie on each other, instead of the outer
  // edges of these elements; for linear and cubic modes alone. By default they do not.
  std::optional<bool> align_corners = std::nullopt;
  // Whether coordinates follow from the two sizes alone; otherwise they follow from scale_factor,
  // where that is given.
  bool recompute_scale_factor = false;
  // Whether a smaller result averages over all elements below each of its own, as Pillow does: for
  // "bilinear", "bicubic" (then a = -0.5) and "lanczos" in two dimensions.
  bool antialias = false;
};

// Returns x at another size, (n, c, l'), (n, c, h', w') or (n, c, d', h', w'), as
// torch.nn.functional.interpolate does. Throws a DTypeError if the mode needs a floating x, a
// ShapeError if x has no element in space, and a ValueError for options that do not fit the mode,
// the shape of x or each other, or for a size above 2^31 - 1.
TENON_API Tensor interpolate(const Tensor& x, const InterpolateOptions& options);
// Returns interpolate(x, options), by the older name that PyTorch has for it.
TENON_API Tensor upsample(const Tensor& x, const InterpolateOptions& options);

// ---- other places ----

// The options of grid_sample.
struct GridSampleOptions {
  // How values between elements are computed: "bilinear" (in volumes trilinear), "nearest" (of two
  // equally near elements the even one) or "bicubic" (a = -0.75; for images alone).
  std::string_view mode = "bilinear";
  // What lies outside of x: "zeros", "border" (the nearest element of x) or "reflection" (x
  // mirrored at its borders).
  std::string_view padding_mode = "zeros";
  // Whether -1 and 1 are the centers of the outermost elements, instead of their outer edges.
  bool align_corners = false;
};

// Returns x (n, c, h, w) at the places that grid (n, h', w', 2) names, of shape (n, c, h', w'), as
// torch.nn.functional.grid_sample does. The last dimension of the grid is (x, y), where -1 and 1
// are the borders of x; for a volume (n, c, d, h, w) the grid is (n, d', h', w', 3) with (x, y, z),
// and the result (n, c, d', h', w'). NaN is a place outside of x. Both tensors get gradients; that
// of the grid is 0 for "nearest". Throws a DTypeError unless both have one floating dtype, and a
// ShapeError for other shapes or an x without an element in space.
TENON_API Tensor grid_sample(const Tensor& x, const Tensor& grid,
                             const GridSampleOptions& options = {});

// Returns the grid with which grid_sample gives a result of shape `size` under the affine matrices
// theta, as torch.nn.functional.affine_grid does: shape (n, h, w, 2) for theta (n, 2, 3) and size
// (n, c, h, w), and (n, d, h, w, 3) for theta (n, 3, 4) and size (n, c, d, h, w). `align_corners`
// is that of grid_sample. Throws a DTypeError unless theta is floating, and a ValueError for a size
// that is not positive throughout.
TENON_API Tensor affine_grid(const Tensor& theta, const Shape& size, bool align_corners = false);

// ---- channels, of any dtype ----

// Returns x (…, c r^2, h, w), where r is upscale_factor, with its channels as pixels, of shape
// (…, c, h r, w r) (Shi et al., arXiv:1609.05158). Throws a ShapeError if the number of channels is
// not a multiple of r^2.
TENON_API Tensor pixel_shuffle(const Tensor& x, int64_t upscale_factor);
// Returns x (…, c, h r, w r), where r is downscale_factor, with its pixels as channels, of shape
// (…, c r^2, h, w): the reverse of pixel_shuffle. Throws a ShapeError if height or width is not a
// multiple of r.
TENON_API Tensor pixel_unshuffle(const Tensor& x, int64_t downscale_factor);
// Returns x (n, c, …), of at least three dimensions, with its channels in another order: those that
// are the first of their group among `groups` groups, then the second ones, and so on (Zhang et
// al., arXiv:1707.01083). Throws a ShapeError unless `groups` divides c.
TENON_API Tensor channel_shuffle(const Tensor& x, int64_t groups);

}  // namespace tenon
