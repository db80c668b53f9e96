// Activations and their slopes, alike on every device: value(x) is the activation, slope(x) its
// derivative, and `from` makes one of the scalars of a run. `M` says what is computed with: numbers
// on a GPU, packets of them on a CPU. M::Value has arithmetic, comparisons and `?:`; M::of makes
// one of a number, and M::exp, expm1, log1p and abs are its functions. `T` is the type of the
// numbers.
#pragma once

#include <tenon/plugins/abi/abi.h>
#include <tenon/plugins/sdk/host_device.h>

namespace tenon::sdk::formulas {

// x positive above 0, and negative (exp(x input) - 1) below it: elu, selu and celu.
template <class T>
struct Elu {
  T negative, positive, input;
  static Elu from(const tn_scalar* s) {
    return {static_cast<T>(s[0].f * s[1].f), static_cast<T>(s[1].f), static_cast<T>(s[2].f)};
  }
  template <class M, class V = typename M::Value>
  TN_HD V value(V x) const {
    return x <= M::of(T(0)) ? V(M::expm1(x * M::of(input)) * M::of(negative))
                            : V(x * M::of(positive));
  }
  template <class M, class V = typename M::Value>
  TN_HD V slope(V x) const {
    return x > M::of(T(0)) ? M::of(positive)
                           : V(M::exp(x * M::of(input)) * M::of(negative * input));
  }
};

// x above 0, and negative_slope x below it.
template <class T>
struct LeakyRelu {
  T negative_slope;
  static LeakyRelu from(const tn_scalar* s) { return {static_cast<T>(s[0].f)}; }
  template <class M, class V = typename M::Value>
  TN_HD V value(V x) const {
    return x > M::of(T(0)) ? x : V(x * M::of(negative_slope));
  }
  template <class M, class V = typename M::Value>
  TN_HD V slope(V x) const {
    return x > M::of(T(0)) ? M::of(T(1)) : M::of(negative_slope);
  }
};

// log(1 + exp(z)) / beta with z = beta x, and x where z is above the threshold.
template <class T>
struct Softplus {
  T beta, threshold;
  static Softplus from(const tn_scalar* s) {
    return {static_cast<T>(s[0].f), static_cast<T>(s[1].f)};
  }
  template <class M, class V = typename M::Value>
  TN_HD V value(V x) const {
    const V z = x * M::of(beta), zero = M::of(T(0));
    const V soft = (z > zero ? z : zero) + M::log1p(M::exp(-M::abs(z)));
    return z > M::of(threshold) ? x : V(soft / M::of(beta));
  }
  template <class M, class V = typename M::Value>
  TN_HD V slope(V x) const {
    const V z = x * M::of(beta), one = M::of(T(1));
    return z > M::of(threshold) ? one : V(one / (one + M::exp(-z)));
  }
};

// log(sigmoid(x)) = min(x, 0) - log(1 + exp(-|x|))
template <class T>
struct LogSigmoid {
  static LogSigmoid from(const tn_scalar*) { return {}; }
  template <class M, class V = typename M::Value>
  TN_HD V value(V x) const {
    const V zero = M::of(T(0));
    return (x < zero ? x : zero) - M::log1p(M::exp(-M::abs(x)));
  }
  template <class M, class V = typename M::Value>
  TN_HD V slope(V x) const {
    const V one = M::of(T(1));
    return one / (one + M::exp(x));
  }
};

// x tanh(softplus(x)) (Misra, arXiv:1908.08681). With e = exp(x) and n = e (e + 2), tanh(log(1 +
// e)) is n / (n + 2), in which nothing cancels. Above 20 it is 1, and e^2 would overflow.
template <class T>
struct Mish {
  static Mish from(const tn_scalar*) { return {}; }
  template <class M, class V = typename M::Value>
  TN_HD V value(V x) const {
    const V e = M::exp(x), two = M::of(T(2)), n = e * (e + two);
    return x > M::of(T(20)) ? x : V(x * (n / (n + two)));
  }
  template <class M, class V = typename M::Value>
  TN_HD V slope(V x) const {
    const V e = M::exp(x), one = M::of(T(1)), two = M::of(T(2)), n = e * (e + two), d = n + two;
    return x > M::of(T(20)) ? one : V(n / d + M::of(T(4)) * x * (e / d) * ((one + e) / d));
  }
};

// x sigmoid(2 u) with 2 u = a (x + b x^3), a = 2 sqrt(2 / pi): gelu with (1 + tanh(u)) / 2 for the
// distribution function, as sigmoid, which keeps its digits where tanh is near to -1.
template <class T>
struct GeluTanh {
  static constexpr T kA = T(1.5957691216057307117597842397375), kB = T(0.044715);
  static GeluTanh from(const tn_scalar*) { return {}; }
  template <class M, class V = typename M::Value>
  TN_HD V value(V x) const {
    const V one = M::of(T(1)), negative = x * (x * x * M::of(-kA * kB) - M::of(kA));
    return x / (one + M::exp(negative));
  }
  // s + x s (1 - s) (2 u)'. Farther from 0 than 100 it is 0 or 1, and x^3 would overflow.
  template <class M, class V = typename M::Value>
  TN_HD V slope(V x) const {
    const V one = M::of(T(1)), bound = M::of(T(100)), low = x < -bound ? -bound : x;
    const V near = low > bound ? bound : low, square = near * near;
    const V e = M::exp(-M::abs(near * (square * M::of(kA * kB) + M::of(kA)))), s = one / (one + e);
    const V bent = near * (square * M::of(3 * kA * kB) + M::of(kA));
    return (near > M::of(T(0)) ? s : V(e * s)) + bent * (e * s * s);
  }
};

// x + 3 within [0, 6], divided by 6. NaN stays NaN.
template <class T>
struct HardSigmoid {
  static HardSigmoid from(const tn_scalar*) { return {}; }
  template <class M, class V = typename M::Value>
  TN_HD static V of(V x) {
    const V zero = M::of(T(0)), six = M::of(T(6)), up = x + M::of(T(3));
    const V low = up < zero ? zero : up;
    return (low > six ? six : low) / six;
  }
  template <class M, class V = typename M::Value>
  TN_HD V value(V x) const {
    return of<M>(x);
  }
  // PyTorch's constant, which is an f32 for every dtype.
  template <class M, class V = typename M::Value>
  TN_HD V slope(V x) const {
    const V zero = M::of(T(0)), slope = M::of(T(1.0f / 6.0f));
    const V below = x < M::of(T(3)) ? slope : zero;
    return x > M::of(T(-3)) ? below : zero;
  }
};

// x times HardSigmoid of x.
template <class T>
struct HardSwish {
  static HardSwish from(const tn_scalar*) { return {}; }
  template <class M, class V = typename M::Value>
  TN_HD V value(V x) const {
    return x * HardSigmoid<T>::template of<M>(x);
  }
  template <class M, class V = typename M::Value>
  TN_HD V slope(V x) const {
    const V inside = x / M::of(T(3)) + M::of(T(0.5));
    const V below = x < M::of(T(3)) ? inside : M::of(T(1));
    return x <= M::of(T(-3)) ? M::of(T(0)) : below;
  }
};

}  // namespace tenon::sdk::formulas
