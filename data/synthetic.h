// A data set of images that needs no download.
#pragma once

#include <cstdint>
#include <string_view>

#include <tenon/data/tensor_dataset.h>

namespace tenon::data {

struct SyntheticOptions {
  uint64_t seed = 0;
  double noise = 0.12;  // standard deviation of the noise of each pixel, whose range is [0, 1]
  ToFloat pixels = {};  // how batches convert the pixels
};
// Returns `count` grey images (count, 1, 28, 28) of ten drawn shapes in random order. The classes
// have equal numbers of images, or differ by one. The images differ in position, size, angle,
// stroke, brightness, a distracting line, and noise. The same seed and count give the same data;
// take another seed for test data. Throws a ValueError if the count or the noise is negative.
TENON_API TensorDataset synthetic(int64_t count, const SyntheticOptions& options = {});

// Returns the name of a class: "disc", "ring", …. Throws an IndexError for a number outside [0,
// 10).
TENON_API std::string_view synthetic_class(int64_t label);

}  // namespace tenon::data
