// Steps that change the size of images, with torchvision's names, options and results.
#pragma once

#include <tenon/core/pair.h>
#include <tenon/data/image.h>

namespace tenon::data {

// How pixels between pixels are found. With `bilinear`, an image that shrinks is made of averages
// over all of its pixels if `antialias` is set (a triangle filter, as Pillow's); without it, only
// of the nearest four.
enum class ResizeMode { bilinear, nearest };

struct ResizeOptions {
  ResizeMode mode = ResizeMode::bilinear;
  bool antialias = true;
  int64_t max_size = 0;  // for one number: the longer edge gets no longer than this; 0: any length
};
// Resize(256) makes the shorter edge 256 pixels long and keeps the proportions; Resize({224, 320})
// makes images of this height and width. Throws a ValueError for a size below 1; the step throws a
// ShapeError for an image without pixels, and for one that would get absurdly long.
class TENON_API Resize {
 public:
  explicit Resize(Pair size, const ResizeOptions& options = {});
  void operator()(Image& image, Random& random) const;

 private:
  Pair size_;
  ResizeOptions options_;
};

struct RandomResizedCropOptions {
  double min_scale = 0.08, max_scale = 1;         // share of the image's area
  double min_ratio = 3. / 4, max_ratio = 4. / 3;  // width by height
  ResizeMode mode = ResizeMode::bilinear;
  bool antialias = true;
};
// Takes a random piece of the image, of random area and proportions, and resizes it. If ten
// attempts do not fit into the image, it takes the middle. Throws a ValueError for options out of
// range, and as Resize does.
class TENON_API RandomResizedCrop {
 public:
  explicit RandomResizedCrop(Pair size, const RandomResizedCropOptions& options = {});
  void operator()(Image& image, Random& random) const;

 private:
  Pair size_;
  RandomResizedCropOptions options_;
};

}  // namespace tenon::data
