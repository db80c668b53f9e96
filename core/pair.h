// A size in two dimensions, as convolution and pooling take it: `2` or `{2, 3}`.
#pragma once

#include <concepts>
#include <cstdint>

#include <tenon/core/shape.h>

namespace tenon {

// Height and width. One number means both.
struct Pair {
  int64_t height = 0, width = 0;
  // How many numbers it was made from; 0 for a default-constructed Pair, which stands for a size
  // that was not given. Layers print a size as it was given: "2", not "(2, 2)".
  int numbers = 0;

  constexpr Pair() = default;
  template <std::integral I>
  constexpr Pair(I both) : height(static_cast<int64_t>(both)), width(height), numbers(1) {}
  constexpr Pair(int64_t height, int64_t width) : height(height), width(width), numbers(2) {}

  // Returns whether it is a size at all, that is, not default-constructed.
  constexpr bool given() const { return numbers > 0; }
  // Returns (height, width).
  Shape shape() const { return {height, width}; }
  // Returns whether height and width are both this number.
  constexpr bool is(int64_t both) const { return height == both && width == both; }
};

}  // namespace tenon
