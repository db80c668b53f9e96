// Sizes in one, two and three dimensions, as convolution and pooling take them: `2` or `{2, 3}`.
#pragma once

#include <concepts>
#include <cstdint>

#include <tenon/core/shape.h>

namespace tenon {

// A length, for layers of one dimension; those of more have a Pair or a Triple.
struct Single {
  // The number of elements.
  int64_t length = 0;
  // Counts the numbers that it was made from, as for Pair.
  int numbers = 0;

  // Makes a length that was not given.
  constexpr Single() = default;
  // Makes this length.
  template <std::integral I>
  constexpr Single(I length) : length(static_cast<int64_t>(length)), numbers(1) {}

  // Returns whether it is a length at all, that is, not default-constructed.
  constexpr bool given() const { return numbers > 0; }
  // Returns (length,).
  Shape shape() const { return {length}; }
  // Returns whether the length is this number.
  constexpr bool is(int64_t number) const { return length == number; }
};

// Height and width. One number means both.
struct Pair {
  // The numbers of rows and columns.
  int64_t height = 0, width = 0;
  // Counts the numbers that it was made from; 0 for a default-constructed Pair, which stands for a
  // size that was not given. Layers print a size as it was given: "2", not "(2, 2)".
  int numbers = 0;

  // Makes a size that was not given.
  constexpr Pair() = default;
  // Make a size of one number for both, or of height and width.
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

// Depth, height and width. One number means all of them.
struct Triple {
  // The numbers of planes, rows and columns.
  int64_t depth = 0, height = 0, width = 0;
  // Counts the numbers that it was made from, as for Pair.
  int numbers = 0;

  // Makes a size that was not given.
  constexpr Triple() = default;
  // Make a size of one number for all, or of depth, height and width.
  template <std::integral I>
  constexpr Triple(I all)
      : depth(static_cast<int64_t>(all)), height(depth), width(depth), numbers(1) {}
  constexpr Triple(int64_t depth, int64_t height, int64_t width)
      : depth(depth), height(height), width(width), numbers(3) {}

  // Returns whether it is a size at all, that is, not default-constructed.
  constexpr bool given() const { return numbers > 0; }
  // Returns (depth, height, width).
  Shape shape() const { return {depth, height, width}; }
  // Returns whether depth, height and width are all this number.
  constexpr bool is(int64_t all) const { return depth == all && height == all && width == all; }
};

}  // namespace tenon
