// What pointwise kernels of the plugin compute for one element where the SDK has no formula for it.
// nvcc compiles this text, and so do the kernels that are compiled at run time (fused.cpp).
#pragma once

#include <cmath>
#include <cstdint>

#include <cuda_runtime.h>

namespace tenon::cuda::elements {

// Operators for which CUDA has functions.
#define TN_UNARY(Name, formula)          \
  struct Name {                          \
    template <class T>                   \
    __device__ T operator()(T x) const { \
      return formula;                    \
    }                                    \
  }
TN_UNARY(Exp, std::exp(x));
TN_UNARY(Log, std::log(x));
TN_UNARY(Sin, std::sin(x));
TN_UNARY(Cos, std::cos(x));
TN_UNARY(Erf, std::erf(x));
TN_UNARY(Tanh, std::tanh(x));
TN_UNARY(Sigmoid, T(1) / (T(1) + std::exp(-x)));
TN_UNARY(Silu, x / (T(1) + std::exp(-x)));
TN_UNARY(Gelu, T(0.5) * x * (T(1) + std::erf(x * T(0.70710678118654752440))));
#undef TN_UNARY

// d/dx x Phi(x) = Phi(x) + x phi(x)
struct GeluBackward {
  template <class T>
  __device__ T operator()(T g, T x) const {
    T cdf = T(0.5) * (T(1) + std::erf(x * T(0.70710678118654752440)));
    T pdf = std::exp(T(-0.5) * x * x) * T(0.39894228040143267794);
    return g * (cdf + x * pdf);
  }
};
struct SiluBackward {
  template <class T>
  __device__ T operator()(T g, T x) const {
    T s = T(1) / (T(1) + std::exp(-x));
    return g * s * (T(1) + x * (T(1) - s));
  }
};

// ---- pow

enum class Exponent : int32_t { any, two, three, half, minus_one };

// The kind of an exponent that is one number for all elements.
__host__ __device__ inline Exponent kind_of(double exponent) {
  return exponent == 2     ? Exponent::two
         : exponent == 3   ? Exponent::three
         : exponent == 0.5 ? Exponent::half
         : exponent == -1  ? Exponent::minus_one
                           : Exponent::any;
}

struct Pow {
  Exponent exponent = Exponent::any;  // of the whole launch
  template <class T>
  __device__ T operator()(T a, T b) const {
    switch (exponent) {
      case Exponent::two:
        return a * a;
      case Exponent::three:
        return a * a * a;
      case Exponent::half:
        return std::sqrt(a);
      case Exponent::minus_one:
        return T(1) / a;
      default:
        return std::pow(a, b);
    }
  }
};

// ---- the smooth activations of sdk/activations.h

// What their formulas are computed with: a number.
template <class T>
struct Number {
  using Value = T;
  __device__ static T of(T x) { return x; }
  __device__ static T exp(T x) { return std::exp(x); }
  __device__ static T expm1(T x) { return std::expm1(x); }
  __device__ static T log1p(T x) { return std::log1p(x); }
  __device__ static T abs(T x) { return std::fabs(x); }
};

template <class F>
struct ValueOf {
  F f;
  template <class T>
  __device__ T operator()(T x) const {
    return f.template value<Number<T>>(x);
  }
};
template <class F>
struct SlopeOf {
  F f;
  template <class T>
  __device__ T operator()(T g, T x) const {
    return g * f.template slope<Number<T>>(x);
  }
};

}  // namespace tenon::cuda::elements
