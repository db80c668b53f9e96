// A C++ number as an operand. It remembers whether it was an integer or a bool, because `int_tensor
// + 1` stays an integer tensor and `int_tensor + 1.0` becomes f32, and `bool_tensor + true` stays
// bool while `bool_tensor + 1` becomes i64, as in PyTorch.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tenon {

// A function that takes a Number takes any arithmetic type.
struct Number {
  // Keeps the value of any number of C++.
  template <class T>
    requires std::is_arithmetic_v<T>
  constexpr Number(T value)
      : f(static_cast<double>(value)),
        i(0),
        integral(is_int64(value)),
        boolean(std::is_same_v<T, bool>) {
    if (integral) i = static_cast<int64_t>(value);
  }

  // The value as a double, and as an integer, which is valid if `integral` is true.
  double f;
  int64_t i;
  // Tell whether the value was an integer that int64 holds, and whether it was a bool; of a bool
  // both hold, and i is 0 or 1.
  bool integral;
  bool boolean;

 private:
  // An unsigned number that does not fit into int64 counts as a floating-point number, so that it
  // does not become negative.
  template <class T>
  static constexpr bool is_int64(T value) {
    if constexpr (std::is_unsigned_v<T> && sizeof(T) >= sizeof(int64_t))
      return value <= static_cast<T>(std::numeric_limits<int64_t>::max());
    else
      return std::is_integral_v<T>;
  }
};

}  // namespace tenon
