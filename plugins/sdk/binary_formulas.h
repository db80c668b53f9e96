// Formulas of two and three operands beside those of formulas.h, alike on every device.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include <tenon/plugins/sdk/formulas.h>
#include <tenon/plugins/sdk/host_device.h>

namespace tenon::sdk::formulas {

// ---- division with a remainder. Of integers by 0 all of it is 0. ----

// Returns whether b is 0 or -1. -1 divides every integer; of the least one the quotient wraps
// around, where a processor traps.
template <class T>
TN_HD bool divides_all(T b) {
  if constexpr (std::is_signed_v<T>) {
    return b == T(0) || b == T(-1);
  } else {
    return b == T(0);
  }
}
// Returns whether a processor's remainder has to be moved by b, so that it has the sign of b.
template <class T>
TN_HD bool has_other_sign(T rest, T b) {
  if constexpr (std::is_unsigned_v<T>) {
    return false;
  } else {
    return rest != T(0) && (rest < T(0)) != (b < T(0));
  }
}

// Returns the remainder of a / b with the sign of a.
struct Fmod {
  template <class T>
  TN_HD T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return std::fmod(a, b);
    } else {
      return divides_all(b) ? T(0) : static_cast<T>(a % b);
    }
  }
};
// Returns the remainder of a / b with the sign of b.
struct Remainder {
  template <class T>
  TN_HD T operator()(T a, T b) const {
    const T rest = Fmod()(a, b);
    return has_other_sign(rest, b) ? static_cast<T>(rest + b) : rest;
  }
};
// Returns the largest whole number that is not above a / b.
struct FloorDivide {
  template <class T>
  TN_HD T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (b == T(0)) return a / b;
      const T rest = std::fmod(a, b);
      T quotient = (a - rest) / b;
      if (has_other_sign(rest, b)) quotient -= T(1);
      if (quotient == T(0)) return std::copysign(T(0), a / b);
      const T whole = std::floor(quotient);
      return quotient - whole > T(0.5) ? whole + T(1) : whole;
    } else {
      if (divides_all(b)) return b == T(0) ? T(0) : Neg()(a);
      const T quotient = static_cast<T>(a / b);
      return has_other_sign(static_cast<T>(a % b), b) ? static_cast<T>(quotient - 1) : quotient;
    }
  }
};

// ---- functions of two real numbers ----

// Returns the angle of the point (x, y), as std::atan2 does.
struct Atan2 {
  template <class T>
  TN_HD T operator()(T y, T x) const {
    return std::atan2(y, x);
  }
};
// Returns the root of a^2 + b^2, as std::hypot does.
struct Hypot {
  template <class T>
  TN_HD T operator()(T a, T b) const {
    return std::hypot(a, b);
  }
};
// Returns a with the sign of b, as std::copysign does.
struct Copysign {
  template <class T>
  TN_HD T operator()(T a, T b) const {
    return std::copysign(a, b);
  }
};
// Returns log(exp(a) + exp(b)): the larger, and what the smaller adds; equal infinities have no
// difference.
struct Logaddexp {
  template <class T>
  TN_HD T operator()(T a, T b) const {
    const T larger = a > b ? a : b;
    if (a == b && std::fabs(a) > T(1) && a - a != T(0)) return a;
    return larger + std::log1p(std::exp(-std::fabs(a - b)));
  }
};
// Returns x log(y), which is 0 for x = 0 unless y is NaN.
struct Xlogy {
  template <class T>
  TN_HD T operator()(T x, T y) const {
    return x == T(0) && y == y ? T(0) : x * std::log(y);
  }
};

// ---- bits ----

// Returns the bits that both have.
struct BitAnd {
  template <class T>
  TN_HD T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
// Returns the bits that at least one has.
struct BitOr {
  template <class T>
  TN_HD T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
// Returns the bits that exactly one has.
struct BitXor {
  template <class T>
  TN_HD T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
// Returns whether a shift by this number leaves no bits but those of the sign: it is negative or at
// least their number.
template <class T>
TN_HD bool shifts_out(T by) {
  constexpr T width = 8 * sizeof(T);
  if constexpr (std::is_unsigned_v<T>) {
    return by >= width;
  } else {
    return by < T(0) || by >= width;
  }
}
// Returns a shifted left by b bits; 0 if all are shifted out.
struct LeftShift {
  template <class T>
  TN_HD T operator()(T a, T b) const {
    using Bits = std::make_unsigned_t<T>;
    return shifts_out(b) ? T(0) : static_cast<T>(static_cast<Bits>(a) << b);
  }
};
// Returns a shifted right by b bits, which keeps the sign.
struct RightShift {
  template <class T>
  TN_HD T operator()(T a, T b) const {
    if (!shifts_out(b)) return static_cast<T>(a >> b);
    if constexpr (std::is_unsigned_v<T>) {
      return T(0);
    } else {
      return a < T(0) ? T(-1) : T(0);
    }
  }
};

// ---- three operands ----

// Returns a + weight (b - a), from the nearer end, so that weights 0 and 1 give a and b themselves.
struct Lerp {
  template <class T>
  TN_HD T operator()(T a, T b, T weight) const {
    const T difference = b - a;
    return std::fabs(weight) < T(0.5) ? a + weight * difference : b - difference * (T(1) - weight);
  }
};
// Returns x + a b; integers wrap around.
struct Addcmul {
  template <class T>
  TN_HD T operator()(T x, T a, T b) const {
    return static_cast<T>(wrapping(x) + wrapping(a) * wrapping(b));
  }
};
// Returns x + a / b.
struct Addcdiv {
  template <class T>
  TN_HD T operator()(T x, T a, T b) const {
    return x + a / b;
  }
};

// ---- one operand with limits that a run brings ----

// Returns x, or the number that stands for NaN or for an infinity.
template <class T>
struct NanToNum {
  T nan, posinf, neginf;
  static NanToNum from(const tn_scalar* s) {
    return {static_cast<T>(s[0].f), static_cast<T>(s[1].f), static_cast<T>(s[2].f)};
  }
  TN_HD T operator()(T x) const {
    if (x != x) return nan;
    if (x - x == T(0)) return x;
    return x > T(0) ? posinf : neginf;
  }
};
// Returns log(p / (1 - p)) of p, which is x within [low, high].
template <class T>
struct Logit {
  T low, high;
  static Logit from(const tn_scalar* s) { return {static_cast<T>(s[0].f), static_cast<T>(s[1].f)}; }
  TN_HD T operator()(T x) const {
    const T up = x < low ? low : x, p = up > high ? high : up;
    return std::log(p / (T(1) - p));
  }
};

}  // namespace tenon::sdk::formulas
