// A data set of images that needs no download.
#pragma once

#include <cstdint>
#include <string_view>

#include <tenon/data/tensor_dataset.h>

namespace tenon::data {

// Says what synthetic draws and how batches convert it.
struct SyntheticOptions {
  // Sets the seed of everything that is drawn.
  uint64_t seed = 0;
  // Sets the standard deviation of the noise of each pixel, whose range is [0, 1].
  double noise = 0.12;
  // Says how batches convert the pixels.
  ToFloat pixels = {};
};
// Returns a data set of `count` gray images: u8 (count, 1, 28, 28) of ten drawn shapes in random
// order, with i64 labels (count). The classes have equal numbers of images, or differ by one. The
// images differ in position, size, angle, stroke, brightness, a distracting line, and noise. The
// same seed and count give the same data; take another seed for test data. Throws a ValueError if
// the count is negative, or if the noise is negative or not finite.
TENON_API TensorDataset synthetic(int64_t count, const SyntheticOptions& options = {});

// Returns the name of a class: "disc", "ring", …. Throws an IndexError for a number outside [0,
// 10).
TENON_API std::string_view synthetic_class(int64_t label);

}  // namespace tenon::data
