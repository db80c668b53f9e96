// Steps that cut, pad and mirror images, with torchvision's names, options and results. All work on
// u8 and f32 images.
#pragma once

#include <memory>
#include <vector>

#include <tenon/core/pair.h>
#include <tenon/data/image.h>
#include <tenon/data/transform.h>

namespace tenon::data {

// Says what is beyond the edge of an image: a number; the nearest pixel; the image mirrored,
// without or with the pixel at the edge itself.
enum class PadMode { constant, edge, reflect, symmetric };

// Says with what Pad fills the new pixels.
struct PadOptions {
  // Sets the number that PadMode::constant writes; for u8 images a whole number from 0 to 255.
  double fill = 0;
  // Says what is beyond the edge.
  PadMode mode = PadMode::constant;
};
// Adds `padding` pixels at each edge: one number, or {top and bottom, left and right}. The
// constructor throws a ValueError for a negative number; the step throws a ShapeError if the image
// is too small to be mirrored that far, and a ValueError for a fill that u8 does not have.
class TENON_API Pad {
 public:
  // Makes the step for this padding.
  explicit Pad(Pair padding, const PadOptions& options = {});
  // Makes an image (C, H, W) one of (C, H + 2 top and bottom, W + 2 left and right).
  void operator()(Image& image, Random& random) const;

 private:
  Pair padding_;
  PadOptions options_;
};

// Says how RandomCrop pads the image before it is cut.
struct RandomCropOptions {
  // Adds so many pixels at each edge first, as Pad does.
  Pair padding = 0;
  // Pads an image that is smaller than the crop until it fits.
  bool pad_if_needed = false;
  // Say what is written there, as in PadOptions.
  double fill = 0;
  PadMode mode = PadMode::constant;
};
// Cuts a piece of this size out of the image, at a random place: RandomCrop(32, {.padding = 4}).
// The constructor throws a ValueError for a size below 1 or a negative padding; the step throws a
// ShapeError if the padded image is smaller than the piece, and as Pad does.
class TENON_API RandomCrop {
 public:
  // Makes the step for a size in pixels, one number or {height, width}.
  explicit RandomCrop(Pair size, const RandomCropOptions& options = {});
  // Makes an image (C, H, W) one of this size.
  void operator()(Image& image, Random& random) const;

 private:
  Pair size_;
  RandomCropOptions options_;
};

// Cuts out the middle. An image that is smaller is padded with 0. The constructor throws a
// ValueError for a size below 1.
class TENON_API CenterCrop {
 public:
  // Makes the step for a size in pixels, one number or {height, width}.
  explicit CenterCrop(Pair size);
  // Makes an image (C, H, W) one of this size; `random` is not used.
  void operator()(Image& image, Random& random) const;

 private:
  Pair size_;
};

// Mirrors the image left to right with probability p. The constructor throws a ValueError unless 0
// <= p <= 1.
class TENON_API RandomHorizontalFlip {
 public:
  // Makes the step for this probability.
  explicit RandomHorizontalFlip(double p = 0.5);
  // Mirrors an image (C, H, W) or leaves it as it is.
  void operator()(Image& image, Random& random) const;

 private:
  double p_;
};
// Turns the image upside down with probability p. The constructor throws a ValueError unless 0 <= p
// <= 1.
class TENON_API RandomVerticalFlip {
 public:
  // Makes the step for this probability.
  explicit RandomVerticalFlip(double p = 0.5);
  // Turns an image (C, H, W) or leaves it as it is.
  void operator()(Image& image, Random& random) const;

 private:
  double p_;
};

// Makes f32 images: (x - mean[c]) / std[c] of an f32 image, and of a u8 image the same after its
// pixels were divided by 255, as ToFloat says (in torchvision: ToTensor, then Normalize). There is
// one mean for each channel or one for all, and the same holds for std. The constructor throws a
// ValueError for a mean that is not finite, a std that is not finite and positive, and numbers of
// means and stds that do not fit each other; the step throws one if their number does not fit the
// image.
class TENON_API Normalize {
 public:
  // Make the step for these means and standard deviations.
  explicit Normalize(const ToFloat& how);
  explicit Normalize(std::vector<double> mean, std::vector<double> std);
  // Makes an image (C, H, W) of u8 or f32 one of f32; `random` is not used.
  void operator()(Image& image, Random& random) const;

 private:
  ToFloat how_;
  std::shared_ptr<const PixelTable> table_;
};

// Says what RandomErasing erases. Defaults and the choice are torchvision's.
struct RandomErasingOptions {
  // Sets the probability with which an image loses a rectangle.
  double p = 0.5;
  // Set the range of the rectangle's share of the image's area.
  double min_scale = 0.02, max_scale = 0.33;
  // Set the range of its height divided by its width.
  double min_ratio = 0.3, max_ratio = 3.3;
  // Sets the number that is written there; for u8 images a whole number from 0 to 255.
  double value = 0;
};
// Erases a random rectangle of the image, smaller than the image in height and width (Zhong et al.,
// arXiv:1708.04896). The constructor throws a ValueError for options out of range; the step throws
// one for a value that u8 does not have.
class TENON_API RandomErasing {
 public:
  // Makes the step for these options.
  explicit RandomErasing(const RandomErasingOptions& options = {});
  // Erases a rectangle of an image (C, H, W), or leaves it as it is if ten attempts did not fit.
  void operator()(Image& image, Random& random) const;

 private:
  RandomErasingOptions options_;
};

}  // namespace tenon::data
