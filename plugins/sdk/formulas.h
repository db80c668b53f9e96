// What pointwise operators compute of one element, alike on every device, for the host and for
// device code. Each is called as a function: formulas::Add()(a, b).
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <tenon/plugins/abi/abi.h>
#include <tenon/plugins/sdk/host_device.h>
#include <tenon/plugins/sdk/power.h>

namespace tenon::sdk::formulas {

// Returns an integer as an unsigned one, because integers wrap around; other numbers as they are.
template <class T>
TN_HD auto wrapping(T x) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<std::make_unsigned_t<T>>(x);
  } else {
    return x;
  }
}

#define TN_FORMULA_1(Name, formula)   \
  struct Name {                       \
    template <class T>                \
    TN_HD T operator()(T x) const {   \
      return static_cast<T>(formula); \
    }                                 \
  }
#define TN_FORMULA_2(Name, Result, formula)   \
  struct Name {                               \
    template <class T>                        \
    TN_HD Result operator()(T a, T b) const { \
      return static_cast<Result>(formula);    \
    }                                         \
  }

// Each of these returns the sum, difference, product, quotient or power of two numbers.
TN_FORMULA_2(Add, T, wrapping(a) + wrapping(b));
TN_FORMULA_2(Sub, T, wrapping(a) - wrapping(b));
TN_FORMULA_2(Mul, T, wrapping(a) * wrapping(b));
TN_FORMULA_2(Div, T, a / b);
TN_FORMULA_2(WholePower, T, whole_power(a, b));

// Returns the larger number, or NaN if either operand is: b is taken where the comparison fails.
struct Maximum {
  template <class T>
  TN_HD T operator()(T a, T b) const {
    T m = a > b ? a : b;
    if constexpr (std::is_floating_point_v<T>) m = a != a ? a : m;
    return m;
  }
};
// Returns the smaller number by the same rule.
struct Minimum {
  template <class T>
  TN_HD T operator()(T a, T b) const {
    T m = a < b ? a : b;
    if constexpr (std::is_floating_point_v<T>) m = a != a ? a : m;
    return m;
  }
};

// Comparisons and logic return bools, which are the bytes 0 and 1.
TN_FORMULA_2(Eq, uint8_t, a == b);
TN_FORMULA_2(Ne, uint8_t, a != b);
TN_FORMULA_2(Lt, uint8_t, a < b);
TN_FORMULA_2(Le, uint8_t, a <= b);
TN_FORMULA_2(Gt, uint8_t, a > b);
TN_FORMULA_2(Ge, uint8_t, a >= b);
TN_FORMULA_2(And, uint8_t, a& b);
TN_FORMULA_2(Or, uint8_t, a | b);
TN_FORMULA_2(Xor, uint8_t, a ^ b);
// Returns whether x is 0.
struct Not {
  template <class T>
  TN_HD uint8_t operator()(T x) const {
    return x == T(0);
  }
};

// Returns -x; integers wrap around.
struct Neg {
  template <class T>
  TN_HD T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(0 - wrapping(x));
    } else {
      return -x;
    }
  }
};
// Returns |x|; of the least integer it is that integer.
struct Abs {
  template <class T>
  TN_HD T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) {
      return std::fabs(x);
    } else if constexpr (std::is_unsigned_v<T>) {
      return x;
    } else {
      return x < T(0) ? Neg()(x) : x;
    }
  }
};
// Returns -1, 0 or 1; 0 for NaN, as PyTorch does.
struct Sign {
  template <class T>
  TN_HD T operator()(T x) const {
    const T positive = static_cast<T>(x > T(0));
    if constexpr (std::is_unsigned_v<T>) {
      return positive;
    } else {
      return static_cast<T>(positive - static_cast<T>(x < T(0)));
    }
  }
};
// Returns max(x, 0), and NaN for NaN.
struct Relu {
  template <class T>
  TN_HD T operator()(T x) const {
    if constexpr (std::is_unsigned_v<T>) {
      return x;
    } else {
      return x < T(0) ? T(0) : x;
    }
  }
};
// Each of these returns what its name says; Round takes the even number of two that are equally
// near.
TN_FORMULA_1(Square, wrapping(x) * wrapping(x));
TN_FORMULA_1(Cube, x* x* x);
TN_FORMULA_1(Reciprocal, T(1) / x);
TN_FORMULA_1(Sqrt, std::sqrt(x));
TN_FORMULA_1(Rsqrt, T(1) / std::sqrt(x));
TN_FORMULA_1(Floor, std::floor(x));
TN_FORMULA_1(Ceil, std::ceil(x));
TN_FORMULA_1(Round, std::nearbyint(x));

// Returns x within [low, high], and NaN for NaN.
template <class T>
struct Clamp {
  T low, high;

  // Returns a limit from a scalar. Limits outside an integer dtype stand for "none" there.
  static T limit(const tn_scalar& s) {
    if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(s.f);
    } else {
      constexpr int64_t least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
      return static_cast<T>(s.i < least ? least : s.i > most ? most : s.i);
    }
  }
  // Returns the limits from scalars 0 and 1 of a run.
  static Clamp from(const tn_scalar* s) { return {limit(s[0]), limit(s[1])}; }

  TN_HD T operator()(T x) const {
    const T v = x < low ? low : x;
    return v > high ? high : v;
  }
};

// Return gradients of activations: a is the gradient of the result, and b the result itself.
TN_FORMULA_2(SigmoidBackward, T, a*(T(1) - b) * b);
TN_FORMULA_2(TanhBackward, T, a*(T(1) - b * b));
TN_FORMULA_2(ReluBackward, T, b <= T(0) ? T(0) : a);

#undef TN_FORMULA_1
#undef TN_FORMULA_2

}  // namespace tenon::sdk::formulas
