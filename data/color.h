// Steps that change colors, with torchvision's names, options and results. They take images of one
// channel (gray) or three (red, green, blue): u8 from 0 to 255, or f32 from 0 to 1.
#pragma once

#include <tenon/data/image.h>

namespace tenon::data {

// Says by how much ColorJitter changes an image. Each number x of the first three stands for a
// factor that is drawn from [max(0, 1 - x), 1 + x], and 0 for none; hue stands for a rotation from
// [-hue, hue] of the whole circle.
struct ColorJitterOptions {
  // Say by how much each changes; they are at least 0.
  double brightness = 0, contrast = 0, saturation = 0;
  // Says by how much the hue turns, from 0 to 0.5.
  double hue = 0;
};
// Changes brightness, contrast, saturation and hue, in random order. The constructor throws a
// ValueError for options out of range, and the step a ShapeError for other numbers of channels.
class TENON_API ColorJitter {
 public:
  // Makes the step for these options.
  explicit ColorJitter(const ColorJitterOptions& options);
  // Changes the colors of an image (C, H, W).
  void operator()(Image& image, Random& random) const;

 private:
  ColorJitterOptions options_;
};

// Makes images gray with probability p; they keep the number of their channels. The constructor
// throws a ValueError unless 0 <= p <= 1, and the step a ShapeError for other numbers of channels.
class TENON_API RandomGrayscale {
 public:
  // Makes the step for this probability.
  explicit RandomGrayscale(double p = 0.1);
  // Makes an image (C, H, W) gray or leaves it as it is.
  void operator()(Image& image, Random& random) const;

 private:
  double p_;
};

// Makes gray images of one or three channels. The constructor throws a ValueError for another
// number, and the step a ShapeError for images of other numbers of channels.
class TENON_API Grayscale {
 public:
  // Makes the step for this number of channels.
  explicit Grayscale(int64_t num_output_channels = 1);
  // Makes an image (C, H, W) a gray one of (num_output_channels, H, W); `random` is not used.
  void operator()(Image& image, Random& random) const;

 private:
  int64_t channels_;
};

// The changes by themselves, for steps that you write. A factor of 1, or a rotation of 0, changes
// nothing; results are kept in the range of pixels. Each throws a ValueError unless the factor is
// finite and at least 0 or the rotation from -0.5 to 0.5, and a ShapeError for other numbers of
// channels.

// Multiplies all values by `factor`.
TENON_API void adjust_brightness(Image& image, double factor);
// Multiplies the distance of all values from the mean of the gray image by `factor`.
TENON_API void adjust_contrast(Image& image, double factor);
// Multiplies the distance of each pixel from its gray by `factor`.
TENON_API void adjust_saturation(Image& image, double factor);
// Turns the hue of each pixel by `rotation`, of which 1 is the whole circle.
TENON_API void adjust_hue(Image& image, double rotation);

}  // namespace tenon::data
