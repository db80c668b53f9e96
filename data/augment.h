// Steps that cut, pad and mirror images, with torchvision's names, options and results. All work on
// u8 and f32 images.
#pragma once

#include <memory>
#include <vector>

#include <tenon/core/pair.h>
#include <tenon/data/image.h>
#include <tenon/data/transform.h>

namespace tenon::data {

// What is beyond the edge of an image: a number; the nearest pixel; the image mirrored, without or
// with the pixel at the edge itself.
enum class PadMode { constant, edge, reflect, symmetric };

struct PadOptions {
  double fill = 0;  // for PadMode::constant; of u8 images a whole number from 0 to 255
  PadMode mode = PadMode::constant;
};
// Adds `padding` pixels at each edge: one number, or {top and bottom, left and right}. The
// constructor throws a ValueError for a negative number; the step throws a ShapeError if the image
// is too small to be mirrored that far, and a ValueError for a fill that u8 does not have.
class TENON_API Pad {
 public:
  explicit Pad(Pair padding, const PadOptions& options = {});
  void operator()(Image& image, Random& random) const;

 private:
  Pair padding_;
  PadOptions options_;
};

struct RandomCropOptions {
  Pair padding = 0;            // as Pad; added before the image is cut
  bool pad_if_needed = false;  // pads an image that is smaller than the crop until it fits
  double fill = 0;             // as PadOptions
  PadMode mode = PadMode::constant;
};
// Cuts a piece of this size out of the image, at a random place: RandomCrop(32, {.padding = 4}).
// The constructor throws a ValueError for a size below 1 or a negative padding; the step throws a
// ShapeError if the padded image is smaller than the piece.
class TENON_API RandomCrop {
 public:
  explicit RandomCrop(Pair size, const RandomCropOptions& options = {});
  void operator()(Image& image, Random& random) const;

 private:
  Pair size_;
  RandomCropOptions options_;
};

// Cuts out the middle. An image that is smaller is padded with 0. Throws a ValueError for a size
// below 1.
class TENON_API CenterCrop {
 public:
  explicit CenterCrop(Pair size);
  void operator()(Image& image, Random& random) const;

 private:
  Pair size_;
};

// Mirrors the image with probability p, left to right. Throws a ValueError unless 0 <= p <= 1.
class TENON_API RandomHorizontalFlip {
 public:
  explicit RandomHorizontalFlip(double p = 0.5);
  void operator()(Image& image, Random& random) const;

 private:
  double p_;
};
// Turns the image upside down with probability p. Throws a ValueError unless 0 <= p <= 1.
class TENON_API RandomVerticalFlip {
 public:
  explicit RandomVerticalFlip(double p = 0.5);
  void operator()(Image& image, Random& random) const;

 private:
  double p_;
};

// Makes f32 images: (x - mean[c]) / std[c] of an f32 image, and of a u8 image the same after its
// pixels were divided by 255, as ToFloat says (in torchvision: ToTensor, then Normalize). There is
// one mean for each channel or one for all, and the same holds for std. The constructor throws a
// ValueError for a mean that is not finite and a std that is not finite and positive, the step one
// if their number does not fit the image.
class TENON_API Normalize {
 public:
  explicit Normalize(const ToFloat& how);
  explicit Normalize(std::vector<double> mean, std::vector<double> std);
  void operator()(Image& image, Random& random) const;

 private:
  ToFloat how_;
  std::shared_ptr<const PixelTable> table_;
};

// Erases a rectangle of the image. Defaults and the choice are torchvision's.
struct RandomErasingOptions {
  double p = 0.5;
  double min_scale = 0.02, max_scale = 0.33;  // its share of the image's area
  double min_ratio = 0.3, max_ratio = 3.3;    // its height by its width
  double value = 0;                           // what is written there, of u8 a whole number
};
// Throws a ValueError for options out of range; the step throws one for a value that u8 does not
// have.
class TENON_API RandomErasing {
 public:
  explicit RandomErasing(const RandomErasingOptions& options = {});
  void operator()(Image& image, Random& random) const;

 private:
  RandomErasingOptions options_;
};

}  // namespace tenon::data
