// A size in two dimensions, as layers take it: `2` or `{2, 3}`.
#pragma once

#include <concepts>
#include <cstdint>

#include <tenon/core/shape.h>

namespace tenon::nn {

struct Pair {
  int64_t height = 0, width = 0;
  bool given_as_one = false;  // prints as PyTorch prints what it was given: "2", not "(2, 2)"

  constexpr Pair() = default;
  template <std::integral I>
  constexpr Pair(I both) : height(static_cast<int64_t>(both)), width(height), given_as_one(true) {}
  constexpr Pair(int64_t height, int64_t width) : height(height), width(width) {}

  Shape shape() const { return {height, width}; }
  bool is(int64_t both) const { return height == both && width == both; }
};

}  // namespace tenon::nn
