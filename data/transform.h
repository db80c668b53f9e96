// Converts stored pixels to the input of a model.
#pragma once

#include <cstdint>
#include <vector>

#include <tenon/core/tensor.h>

namespace tenon::data {

// Says how pixels become numbers: a u8 pixel x of channel c becomes the f32 number (x / 255 -
// mean[c]) / std[c]. There is one mean for each channel or one for all, and the same holds for std.
// The defaults give numbers in [0, 1].
struct ToFloat {
  std::vector<double> mean = {0};
  std::vector<double> std = {1};
};

// Returns u8 images (N, C, …) as f32 on cpu:0. Throws a ValueError if the number of means or stds
// does not fit C, if a mean is not finite, or if a std is not finite and positive; a DTypeError for
// another dtype; and a ShapeError for fewer than two dimensions.
TENON_API Tensor to_float(const Tensor& images, const ToFloat& how = {});

// Holds the 256 values of each channel. A table is exact, and faster than arithmetic on narrow
// vectors.
class PixelTable {
 public:
  // Makes the tables for images of so many channels. Errors are those of to_float, and call the
  // caller `who`.
  PixelTable(const ToFloat& how, int64_t channels, const char* who = "ToFloat");
  // Converts one image of channels × pixels_per_channel bytes to as many numbers.
  void convert(const uint8_t* from, float* to, int64_t pixels_per_channel) const;
  // Converts the `pixels` bytes of one channel of an image.
  void convert_channel(int64_t channel, const uint8_t* from, float* to, int64_t pixels) const;
  // Returns how many tables there are: 1, or as many as channels.
  int64_t tables() const { return static_cast<int64_t>(values_.size() / 256); }

 private:
  int64_t channels_;
  std::vector<float> values_;  // 256 for each table; one table for each channel, or one for all
};

}  // namespace tenon::data
