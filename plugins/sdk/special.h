// Elementary and special functions of one number, alike on every device, for the host and for
// device code.
#pragma once

#include <cmath>

#include <tenon/plugins/sdk/host_device.h>

namespace tenon::sdk::formulas {

#define TN_FUNCTION(Name, formula)  \
  struct Name {                     \
    template <class T>              \
    TN_HD T operator()(T x) const { \
      return formula;               \
    }                               \
  }
// Each of these returns the function of the C++ library that has its name.
TN_FUNCTION(Expm1, std::expm1(x));
TN_FUNCTION(Log1p, std::log1p(x));
TN_FUNCTION(Exp2, std::exp2(x));
TN_FUNCTION(Log2, std::log2(x));
TN_FUNCTION(Log10, std::log10(x));
TN_FUNCTION(Tan, std::tan(x));
TN_FUNCTION(Asin, std::asin(x));
TN_FUNCTION(Acos, std::acos(x));
TN_FUNCTION(Atan, std::atan(x));
TN_FUNCTION(Sinh, std::sinh(x));
TN_FUNCTION(Cosh, std::cosh(x));
TN_FUNCTION(Asinh, std::asinh(x));
TN_FUNCTION(Acosh, std::acosh(x));
TN_FUNCTION(Atanh, std::atanh(x));
TN_FUNCTION(Erfc, std::erfc(x));
TN_FUNCTION(Trunc, std::trunc(x));
#undef TN_FUNCTION

// Returns log |gamma(x)|. The host's std::lgamma writes the sign into a variable that all threads
// share.
struct Lgamma {
  TN_HD float operator()(float x) const {
#if defined(__CUDA_ARCH__) || !defined(__GLIBC__)
    return std::lgamma(x);
#else
    int sign = 0;
    return ::lgammaf_r(x, &sign);
#endif
  }
  TN_HD double operator()(double x) const {
#if defined(__CUDA_ARCH__) || !defined(__GLIBC__)
    return std::lgamma(x);
#else
    int sign = 0;
    return ::lgamma_r(x, &sign);
#endif
  }
};

// Returns pi / tan(pi x), from the distance to the nearest whole number, which is exact.
TN_HD double pi_cot_pi(double x) {
  constexpr double pi = 3.14159265358979323846;
  const double part = x - std::nearbyint(x);
  return std::fabs(part) == 0.5 ? 0.0 : pi / std::tan(pi * part);
}

// Returns the logarithmic derivative of the gamma function, in f64: by the recurrence psi(x + 1) =
// psi(x) + 1/x up to 10, then by the asymptotic series; below 0 by reflection. As in PyTorch, whole
// numbers below 0 give NaN, and 0 an infinity of the opposite sign.
TN_HD double digamma_of(double x) {
  if (x == 0) return std::copysign(double(INFINITY), -x);
  double result = 0;
  if (x < 0) {
    if (x == std::floor(x)) return double(NAN);
    result = -pi_cot_pi(x);
    x = 1 - x;
  }
  for (; x < 10; x += 1) result -= 1 / x;
  const double z = 1 / (x * x);
  const double series =
      z * (1.0 / 12 -
           z * (1.0 / 120 -
                z * (1.0 / 252 -
                     z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z * (1.0 / 12)))))));
  return result + std::log(x) - 0.5 / x - series;
}

// Returns the sum of (x + k)^-s over k = 0, 1, …, for whole s > 1 and x > 0: twelve terms, and the
// rest by the formula of Euler and Maclaurin.
TN_HD double zeta_of_positive(int s, double x) {
  constexpr double over[] = {12.0,          -720.0,
                             30240.0,       -1209600.0,
                             47900160.0,    -1.8924375803183791606e9,
                             7.47242496e10, -2.950130727918164224e12};
  if (x == double(INFINITY)) return 0;
  double sum = 0;
  int terms = 0;
  for (; terms < 12 && x < 1e8; ++terms, x += 1) sum += std::pow(x, -s);
  const double first = std::pow(x, -s);
  sum += first * x / (s - 1) + first / 2;
  double factor = s, power = first / x;
  for (int k = 0; k < 8; ++k) {
    sum += factor * power / over[k];
    factor *= (s + 2 * k + 1.0) * (s + 2 * k + 2.0);
    power /= x * x;
  }
  return sum;
}
// Returns the same for x of either sign; a whole number that is not above 0 gives infinity.
TN_HD double zeta_of(int s, double x) {
  if (!(x <= 0)) return zeta_of_positive(s, x);
  const double part = x - std::floor(x);
  if (!(part > 0)) return double(INFINITY);
  // The terms below 0 are, except for their sign, those from 1 - part to -x. The distance to the
  // whole number above is exact, where 1 - part is not.
  const double below = zeta_of_positive(s, std::ceil(x) - x) - zeta_of_positive(s, 1 - x);
  return zeta_of_positive(s, part) + (s % 2 ? -below : below);
}

// Returns digamma_of(x), computed in f64.
struct Digamma {
  template <class T>
  TN_HD T operator()(T x) const {
    return static_cast<T>(digamma_of(static_cast<double>(x)));
  }
};
// Returns the n-th derivative of digamma, n >= 1: (-1)^(n+1) n! zeta(n + 1, x).
struct Polygamma {
  int n = 1;
  template <class T>
  TN_HD T operator()(T x) const {
    const double value = std::exp(Lgamma()(n + 1.0)) * zeta_of(n + 1, static_cast<double>(x));
    return static_cast<T>(n % 2 ? value : -value);
  }
};

// Returns the inverse of erf: the rational functions of Giles' and Wichura's kind as PyTorch has
// them, and two steps of Halley's method. Newton's leave half of the digits near 1.
struct Erfinv {
  template <class T>
  TN_HD T operator()(T y) const {
    return static_cast<T>(of(static_cast<double>(y)));
  }

 private:
  TN_HD static double of(double y) {
    const double size = std::fabs(y);
    if (!(size < 1)) return size == 1 ? std::copysign(double(INFINITY), y) : double(NAN);
    double x = 0;
    if (size <= 0.7) {
      const double z = y * y;
      x = y * (((-0.140543331 * z + 0.914624893) * z - 1.645349621) * z + 0.886226899) /
          ((((0.012229801 * z - 0.329097515) * z + 1.442710462) * z - 2.118377725) * z + 1);
    } else {
      const double z = std::sqrt(-std::log((1 - size) / 2));
      x = std::copysign((((1.641345311 * z + 3.429567803) * z - 1.62490649) * z - 1.970840454) /
                            ((1.637067800 * z + 3.543889200) * z + 1),
                        y);
    }
    constexpr double slope = 1.12837916709551257390;  // 2 / sqrt(pi)
    for (int step = 0; step < 2; ++step) {
      // Near 1 the difference is that of the complements, which are exact there.
      const double off =
          size <= 0.7 ? std::erf(x) - y : std::copysign((1 - size) - std::erfc(std::fabs(x)), y);
      const double newton = off / (slope * std::exp(-x * x));
      x -= newton / (1 + x * newton);
    }
    return x;
  }
};

}  // namespace tenon::sdk::formulas
