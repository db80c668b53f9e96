// Elementary functions of packets: Eigen's, with the ends of their ranges put right. Results are
// within 8 units in the last place, denormals included (erf: down to 1e-36); NaN and infinity come
// out as the C library's. What Eigen 3.4 has no packets for (sin, cos and erf in f64) is the C
// library's, a lane at a time.
#pragma once

#include <bit>
#include <cmath>

#include <unsupported/Eigen/SpecialFunctions>

#include "simd/packet.h"

namespace tenon::cpu::math {

namespace detail {
// Whether a comparison of packets holds for any lane. Eigen has this for f32 alone.
template <class T>
inline bool any(Vec<T> mask) {
  return Eigen::internal::predux_any(reinterpret_cast<Vec<float>>(mask));
}

// Whether a lane's magnitude is beyond `limit`.
template <class T>
inline bool any_beyond(Vec<T> x, T limit) {
  const Vec<T> size = Eigen::internal::pabs(x);
#if defined(EIGEN_VECTORIZE_AVX512)
  // Comparisons give masks there, which Eigen would turn into a packet and back.
  if constexpr (sizeof(T) == 4) return _mm512_cmp_ps_mask(splat(limit), size, _CMP_LT_OQ) != 0;
  if constexpr (sizeof(T) == 8) return _mm512_cmp_pd_mask(splat(limit), size, _CMP_LT_OQ) != 0;
#else
  return any<T>(Eigen::internal::pcmp_lt(splat(limit), size));
#endif
}

template <class T>
inline Vec<T> with_sign_of(Vec<T> magnitude, Vec<T> x) {
  return Eigen::internal::por(magnitude, Eigen::internal::pand(x, splat(T(-0.0))));
}

template <class T, class F>
inline Vec<T> each_lane(Vec<T> x, F&& f) {
  T lanes[kWidth<T>];
  store(lanes, x);
  for (T& lane : lanes) lane = f(lane);
  return load(lanes);
}

// exp x = (exp x/2)^2 beyond `limit`, and `near` elsewhere.
template <class T>
[[gnu::noinline]] Vec<T> exp_far(Vec<T> x, Vec<T> near, T limit) {
  const Vec<T> far = Eigen::internal::pcmp_lt(splat(limit), Eigen::internal::pabs(x));
  const Vec<T> root = Eigen::internal::pexp(Vec<T>(x * splat(T(0.5))));
  return Eigen::internal::pselect(far, Vec<T>(root * root), near);
}
}  // namespace detail

// Eigen stops a little short of the largest and the smallest results, and gives the last one that
// it has from there on.
template <class T>
inline Vec<T> exp(Vec<T> x) {
  constexpr T limit = sizeof(T) == 4 ? T(87) : T(708);
  const Vec<T> y = Eigen::internal::pexp(x);
  if (detail::any_beyond<T>(x, limit)) [[unlikely]]
    return detail::exp_far<T>(x, y, limit);
  return y;
}

// Eigen's logistic function of f32 is off by thousands of units near -8.
template <class T>
inline Vec<T> sigmoid(Vec<T> x) {
  return splat(T(1)) / (splat(T(1)) + exp<T>(-x));
}

// f64, which Eigen has no packets for: below 0.625 the rational function of Cephes, beyond it by
// exp.
template <class T>
inline Vec<T> tanh(Vec<T> x) {
  if constexpr (sizeof(T) == 4) {
    return Eigen::internal::ptanh(x);
  } else {
    const Vec<T> a = Eigen::internal::pabs(x), z = x * x, one = splat(1.0);
    const Vec<T> large = one - splat(2.0) / (Eigen::internal::pexp(Vec<T>(a + a)) + one);
    const Vec<T> p = (splat(-9.64399179425052238628e-1) * z - splat(9.92877231001918586564e1)) * z -
                     splat(1.61468768441708447952e3);
    const Vec<T> q =
        ((z + splat(1.12811678491632931402e2)) * z + splat(2.23548839060100448583e3)) * z +
        splat(4.84406305325125486048e3);
    const Vec<T> small = a + a * z * (p / q);
    const Vec<T> is_small = Eigen::internal::pcmp_lt(a, splat(0.625));
    return detail::with_sign_of<T>(Eigen::internal::pselect(is_small, small, large), x);
  }
}

// Without FMA Eigen's may step beyond 1.
template <class T>
inline Vec<T> erf(Vec<T> x) {
  if constexpr (sizeof(T) == 4) {
    const Vec<T> y = Eigen::internal::perf(x), one = splat(T(1));
    return Eigen::internal::pmin(Eigen::internal::pmax(y, Vec<T>(-one)), one);
  } else {
    return detail::each_lane<T>(x, [](T v) { return std::erf(v); });
  }
}

template <class T>
inline Vec<T> sin(Vec<T> x) {
  if constexpr (sizeof(T) == 4) return Eigen::internal::psin(x);
  return detail::each_lane<T>(x, [](T v) { return std::sin(v); });
}
template <class T>
inline Vec<T> cos(Vec<T> x) {
  if constexpr (sizeof(T) == 4) return Eigen::internal::pcos(x);
  return detail::each_lane<T>(x, [](T v) { return std::cos(v); });
}

namespace detail {
// Whether no lane is a denormal, zero, negative, infinite or NaN.
inline bool all_normal(Vec<float> x) {
  const Vec<float> least = splat(0x1p-126f), infinity = splat(INFINITY);
#if defined(EIGEN_VECTORIZE_AVX512)
  return _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(x, least, _CMP_GE_OQ), x, infinity,
                                 _CMP_LT_OQ) == 0xffff;
#else
  return !any<float>(reinterpret_cast<Vec<float>>(~((x >= least) & (x < infinity))));
#endif
}

// log x = e ln2 + log(1 + f) for x = (1 + f) 2^e and 1 + f in [0.7, 1.4), with the polynomial of
// Cephes; x is positive and normal, and `lift` is added to e.
inline Vec<float> log_normal(Vec<float> x, Vec<float> lift) {
  typedef int32_t Int __attribute__((vector_size(kVectorBytes)));
  typedef uint32_t Word __attribute__((vector_size(kVectorBytes)));
  const Word bits = reinterpret_cast<Word>(x);
  const Int k = reinterpret_cast<Int>(bits - 0x3f330000u) >> 23;
  const auto m = reinterpret_cast<Vec<float>>(bits - (reinterpret_cast<Word>(k) << 23));
  const Vec<float> e = __builtin_convertvector(k, Vec<float>) + lift;
  const Vec<float> f = m - splat(1.0f), z = f * f;
  Vec<float> p = f * splat(7.0376836292e-2f) - splat(1.1514610310e-1f);
  for (float c : {1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f, -1.6668057665e-1f,
                  2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f})
    p = p * f + splat(c);
  const Vec<float> small = p * f * z + e * splat(1.42860682e-6f);
  return e * splat(0.693145752f) + (f - (splat(0.5f) * z - small));
}

[[gnu::noinline]] inline Vec<float> log_any(Vec<float> x) {
  const Vec<float> zero = splat(0.0f), infinity = splat(INFINITY);
  const auto tiny = x < splat(0x1p-126f);
  // Negative numbers and NaN give wrong values here, which are replaced below.
  Vec<float> y = log_normal(tiny ? x * splat(0x1p24f) : x, tiny ? splat(-24.0f) : zero);
  y = x == zero ? -infinity : y;
  y = x < zero ? splat(NAN) : y;
  return x < infinity ? y : x;
}

inline Vec<float> log_f32(Vec<float> x) {
  if (!all_normal(x)) [[unlikely]]
    return log_any(x);
  return log_normal(x, splat(0.0f));
}
}  // namespace detail

// f32: own code, which takes a third to two thirds of the time of Eigen's (docs/benchmarks.md).
template <class T>
inline Vec<T> log(Vec<T> x) {
  if constexpr (sizeof(T) == 4) {
    return detail::log_f32(x);
  } else {
    // Eigen takes denormals for the smallest normal number.
    const Vec<T> y = Eigen::internal::plog(x);
    const Vec<T> tiny = Eigen::internal::pcmp_lt(x, splat(0x1p-1022));
    if (!detail::any<T>(tiny)) [[likely]]
      return y;
    const Vec<T> lifted = Eigen::internal::plog(Vec<T>(x * splat(0x1p54)));
    return Eigen::internal::pselect(tiny, Vec<T>(lifted - splat(54 * 0.693147180559945309417)), y);
  }
}

}  // namespace tenon::cpu::math
