// exp(x) - 1 and log(1 + x) of packets, precise where the results are small.
#pragma once

#include "simd/math.h"

namespace tenon::cpu::math {

// Kahan's: what rounding 1 + x loses is lost in both factors. Within 5 units in the last place.
template <class T>
inline Vec<T> log1p(Vec<T> x) {
  const Vec<T> one = splat(T(1)), u = x + one, rest = u - one;
  const Vec<T> y = log<T>(u) * (x / rest);
  // Where nothing is left beside 1, x is the result; of infinity, and below -1, log(u) is.
  const Vec<T> tiny = u == one ? x : y;
  return ((u < splat(std::numeric_limits<T>::infinity())) & (u > splat(T(0)))) ? tiny : log<T>(u);
}

// The same for exp(x) - 1, by the logarithm of exp(x) as it was rounded.
template <class T>
inline Vec<T> expm1(Vec<T> x) {
  const Vec<T> one = splat(T(1)), u = exp<T>(x), rest = u - one;
  const Vec<T> y = rest * (x / log<T>(u));
  const Vec<T> tiny = u == one ? x : y;
  const Vec<T> a = Eigen::internal::pabs(x);
  return a < splat(T(30)) ? tiny : rest;
}

}  // namespace tenon::cpu::math
