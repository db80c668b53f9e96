// A C++ number as an operand: remembers whether it was an integer, because `int_tensor + 1` stays an integer tensor and
// `int_tensor + 1.0` becomes f32, as in PyTorch.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace tenon {

struct Number {
  template <class T>
  requires std::is_arithmetic_v<T>
  constexpr Number(T value)
      : f(static_cast<double>(value)),
        i(std::is_integral_v<T> ? static_cast<int64_t>(value) : 0),
        integral(std::is_integral_v<T>) {}

  double f;
  int64_t i;  // where integral
  bool integral;
};

}  // namespace tenon
