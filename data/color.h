// Steps that change colours, with torchvision's names, options and results. They take images of one
// channel (grey) or three (red, green, blue): u8 from 0 to 255, or f32 from 0 to 1.
#pragma once

#include <tenon/data/image.h>

namespace tenon::data {

// Each number x of the first three stands for a factor that is drawn from [max(0, 1 - x), 1 + x],
// and 0 for none; hue stands for a rotation from [-hue, hue] of the whole circle.
struct ColorJitterOptions {
  double brightness = 0, contrast = 0, saturation = 0;  // at least 0
  double hue = 0;                                       // from 0 to 0.5
};
// Changes brightness, contrast, saturation and hue, in random order. The constructor throws a
// ValueError for options out of range, the step a ShapeError for other numbers of channels.
class TENON_API ColorJitter {
 public:
  explicit ColorJitter(const ColorJitterOptions& options);
  void operator()(Image& image, Random& random) const;

 private:
  ColorJitterOptions options_;
};

// Makes images grey with probability p; they keep the number of their channels. Throws a ValueError
// unless 0 <= p <= 1, and the step a ShapeError for other numbers of channels.
class TENON_API RandomGrayscale {
 public:
  explicit RandomGrayscale(double p = 0.1);
  void operator()(Image& image, Random& random) const;

 private:
  double p_;
};

// Makes grey images of one or three channels. Throws a ValueError for another number, and the step
// a ShapeError for images of other numbers of channels.
class TENON_API Grayscale {
 public:
  explicit Grayscale(int64_t num_output_channels = 1);
  void operator()(Image& image, Random& random) const;

 private:
  int64_t channels_;
};

// The changes by themselves, for steps of one's own. A factor of 1, or a rotation of 0, changes
// nothing; factors are at least 0, and a rotation is from -0.5 to 0.5, or a ValueError is thrown.

// Multiplies all values by `factor`.
TENON_API void adjust_brightness(Image& image, double factor);
// Multiplies the distance of all values from the mean of the gray image by `factor`.
TENON_API void adjust_contrast(Image& image, double factor);
// Multiplies the distance of each pixel from its gray by `factor`.
TENON_API void adjust_saturation(Image& image, double factor);
// Turns the hue of each pixel by `rotation`, of which 1 is the whole circle.
TENON_API void adjust_hue(Image& image, double rotation);

}  // namespace tenon::data
