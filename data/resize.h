// Steps that change the size of images, with torchvision's names, options and results.
#pragma once

#include <tenon/core/pair.h>
#include <tenon/data/image.h>

namespace tenon::data {

// Says how pixels between pixels are found. With `bilinear`, an image that shrinks is made of
// averages over all of its pixels if `antialias` is set (a triangle filter, as Pillow's); without
// it, only of the nearest four.
enum class ResizeMode { bilinear, nearest };

// Says how Resize computes pixels.
struct ResizeOptions {
  // Say how pixels between pixels are found, and whether an image that shrinks is averaged.
  ResizeMode mode = ResizeMode::bilinear;
  bool antialias = true;
  // If the size is one number, the longer edge gets no longer than this; 0 stands for any length.
  int64_t max_size = 0;
};
// Changes the size of images: Resize(256) makes the shorter edge 256 pixels long and keeps the
// proportions; Resize({224, 320}) makes images of this height and width. The constructor throws a
// ValueError for a size below 1, and for a max_size that is below it or beside two numbers; the
// step throws a ShapeError for an image without pixels, and for one that would get absurdly long.
class TENON_API Resize {
 public:
  // Makes the step for this size.
  explicit Resize(Pair size, const ResizeOptions& options = {});
  // Makes an image (C, H, W) one of the new size; `random` is not used.
  void operator()(Image& image, Random& random) const;

 private:
  Pair size_;
  ResizeOptions options_;
};

// Says which pieces RandomResizedCrop takes, and how it computes pixels.
struct RandomResizedCropOptions {
  // Set the range of the piece's share of the image's area.
  double min_scale = 0.08, max_scale = 1;
  // Set the range of its width divided by its height.
  double min_ratio = 3. / 4, max_ratio = 4. / 3;
  // Say how pixels between pixels are found, as in ResizeOptions.
  ResizeMode mode = ResizeMode::bilinear;
  bool antialias = true;
};
// Takes a random piece of the image, of random area and proportions, and resizes it. If ten
// attempts do not fit into the image, it takes the middle. The constructor throws a ValueError for
// options out of range or a size below 1; the step throws a ShapeError for an image without pixels.
class TENON_API RandomResizedCrop {
 public:
  // Makes the step for a size in pixels, one number or {height, width}.
  explicit RandomResizedCrop(Pair size, const RandomResizedCropOptions& options = {});
  // Makes an image (C, H, W) one of this size.
  void operator()(Image& image, Random& random) const;

 private:
  Pair size_;
  RandomResizedCropOptions options_;
};

}  // namespace tenon::data
