// What `scatter` and `scatter_reduce` do with a place y and a value x, alike on every device:
// put(y, x) is the new y, and kFirst what y counts as where its own value is left out.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include <tenon/plugins/sdk/host_device.h>

namespace tenon::sdk {

// Replaces the value at the place.
template <class T>
struct AssignTo {
  static constexpr T kFirst = 0;
  TN_HD static T put(T, T x) { return x; }
};

// Adds to the value at the place. Integers wrap around, in unsigned numbers that are not promoted.
template <class T>
struct AddTo {
  static constexpr T kFirst = 0;
  TN_HD static T put(T y, T x) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<uint64_t>(y) + static_cast<uint64_t>(x));
    else
      return y + x;
  }
};
// Multiplies the value at the place. Integers wrap around.
template <class T>
struct MultiplyTo {
  static constexpr T kFirst = 1;
  TN_HD static T put(T y, T x) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<uint64_t>(y) * static_cast<uint64_t>(x));
    else
      return y * x;
  }
};

// Keeps the larger or the smaller of both values. A NaN wins, and stays.
template <class T, bool Largest>
struct ExtremeTo {
  using Limits = std::numeric_limits<T>;
  static constexpr T kFirst = Largest
                                  ? (Limits::has_infinity ? -Limits::infinity() : Limits::lowest())
                                  : (Limits::has_infinity ? Limits::infinity() : Limits::max());
  TN_HD static T put(T y, T x) { return (Largest ? x > y : x < y) || x != x ? x : y; }
};
// Keeps the larger value.
template <class T>
using LargestTo = ExtremeTo<T, true>;
// Keeps the smaller value.
template <class T>
using SmallestTo = ExtremeTo<T, false>;

}  // namespace tenon::sdk
