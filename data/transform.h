// From stored pixels to what a model takes.
#pragma once

#include <cstdint>
#include <vector>

#include <tenon/core/tensor.h>

namespace tenon::data {

// u8 pixels x of channel c become f32 (x / 255 - mean[c]) / std[c]. One mean and std serve all
// channels, or there is one a channel. The defaults give [0, 1].
struct ToFloat {
  std::vector<double> mean = {0};
  std::vector<double> std = {1};
};

// Applied to u8 images (N, C, …); ValueError where mean or std do not fit C, or a std is not
// positive; DTypeError for any other type.
TENON_API Tensor to_float(const Tensor& images, const ToFloat& how = {});

// The 256 values of each channel: exact, and faster than arithmetic on narrow vectors.
class PixelTable {
 public:
  // `channels` of the images; errors as to_float's.
  PixelTable(const ToFloat& how, int64_t channels);
  // One image: channels × pixels_per_channel bytes.
  void convert(const uint8_t* from, float* to, int64_t pixels_per_channel) const;

 private:
  int64_t channels_;
  std::vector<float> values_;  // 256 a table; one table, or one a channel
};

}  // namespace tenon::data
