// Pieces of images, and checks that several steps need.
#pragma once

#include <tenon/data/augment.h>

namespace tenon::data {

// A rectangle, which may reach beyond the image.
struct Window {
  int64_t top = 0, left = 0, height = 0, width = 0;
};

// Makes the image what is in the window. Errors are those of Pad.
void crop(const char* step, Image& image, const Window& window, double fill = 0,
          PadMode mode = PadMode::constant);

// Returns a random rectangle inside the image whose area and height by width are in the ranges, or
// an empty one if ten attempts gave none. It may be as high or as wide as the image if `whole`.
Window random_window(const Image& image, Random& random, double min_scale, double max_scale,
                     double min_ratio, double max_ratio, bool whole);

// Throw a ValueError that names the step.
Pair checked_size(const char* step, Pair size);
double checked_probability(const char* step, double p);
void checked_ratio(const char* step, double least, double most);
// Throws a ValueError unless the image can have this pixel.
void require_pixel(const char* step, const Image& image, double value);

}  // namespace tenon::data
