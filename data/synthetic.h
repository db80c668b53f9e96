// Images that need no download.
#pragma once

#include <cstdint>
#include <string_view>

#include <tenon/data/tensor_dataset.h>

namespace tenon::data {

struct SyntheticOptions {
  uint64_t seed = 0;
  double noise = 0.12;  // standard deviation of each pixel's noise, of the range [0, 1]
  ToFloat pixels = {};  // what batches hold
};
// `count` grey images (N, 1, 28, 28) of ten drawn shapes, equally many of each (or one more), in
// random order: place, size, turn, stroke, brightness, a stray line and noise differ. The same seed
// and count give the same data; take another seed to test on. ValueError where the count or the
// noise is negative.
TENON_API TensorDataset synthetic(int64_t count, const SyntheticOptions& options = {});

// "disc", "ring", …: the name of a class in [0, 10).
TENON_API std::string_view synthetic_class(int64_t label);

}  // namespace tenon::data
