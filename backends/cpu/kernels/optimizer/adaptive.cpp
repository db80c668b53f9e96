// RMSprop, Adagrad, NAdam, RAdam and Lion.
#include <cmath>

#include "kernels/optimizer/steps.h"

namespace tenon::cpu {
namespace {

// Without a decay the parameter does not count, not even where it is infinite.
template <class T, class Numbers>
T decayed(const Numbers& c, T grad, T p) {
  return c.decay == T(0) ? c.sign * grad : c.sign * grad + c.decay * p;
}

template <class T, bool Centered, bool Momentum>
void rmsprop(T* const* x, int64_t n, sdk::RmspropNumbers<T> c) {
  T *p = x[0], *v = x[2], *mean = Centered ? x[3] : nullptr,
    *buffer = Momentum ? x[Centered ? 4 : 3] : nullptr;
  const T* grad = x[1];
  TN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const T g = decayed(c, grad[i], p[i]);
    const T second = c.alpha * v[i] + c.grow * (g * g);
    v[i] = second;
    T variance = second;
    if constexpr (Centered) {
      const T m = c.alpha * mean[i] + c.grow * g, difference = second - m * m;
      mean[i] = m;
      variance = difference < T(0) ? T(0) : difference;
    }
    T change = g / (std::sqrt(variance) + c.eps);
    if constexpr (Momentum) {
      change = c.momentum * buffer[i] + change;
      buffer[i] = change;
    }
    p[i] -= c.lr * change;
  }
}

const sdk::Kernel rmsprop_steps({"rmsprop_step"}, [](tn_device*, const Request& request) {
  const auto r = sdk::RmspropRequest::from(request);
  return with_float(computed_as(r.dtype), [&]<class T>(T) {
    return plan_of<T>(request, r, 0.4,
                      r.centered   ? (r.momentum ? rmsprop<T, true, true> : rmsprop<T, true, false>)
                      : r.momentum ? rmsprop<T, false, true>
                                   : rmsprop<T, false, false>);
  });
});

template <class T>
void adagrad(T* const* x, int64_t n, sdk::AdagradNumbers<T> c) {
  T *p = x[0], *sum = x[2];
  const T* grad = x[1];
  TN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const T g = decayed(c, grad[i], p[i]), s = sum[i] + g * g;
    sum[i] = s;
    p[i] -= c.rate * g / (std::sqrt(s) + c.eps);
  }
}

const sdk::Kernel adagrad_steps({"adagrad_step"}, [](tn_device*, const Request& request) {
  const auto r = sdk::AdagradRequest::from(request);
  return with_float(computed_as(r.dtype),
                    [&]<class T>(T) { return plan_of<T>(request, r, 0.36, adagrad<T>); });
});

template <class T>
void nadam(T* const* x, int64_t n, sdk::NadamNumbers<T> c) {
  T *p = x[0], *m = x[2], *v = x[3];
  const T* grad = x[1];
  TN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const T g = decayed(c, grad[i], p[i]), first = m[i] + c.grow1 * (g - m[i]),
            second = c.beta2 * v[i] + c.grow2 * (g * g);
    m[i] = first;
    v[i] = second;
    p[i] = p[i] * c.shrink -
           (c.grad_rate * g + c.average_rate * first) / (std::sqrt(second) / c.root_bias2 + c.eps);
  }
}

const sdk::Kernel nadam_steps({"nadam_step"}, [](tn_device*, const Request& request) {
  const auto r = sdk::NadamRequest::from(request);
  return with_float(computed_as(r.dtype),
                    [&]<class T>(T) { return plan_of<T>(request, r, 0.5, nadam<T>); });
});

template <class T>
void radam(T* const* x, int64_t n, sdk::RadamNumbers<T> c) {
  T *p = x[0], *m = x[2], *v = x[3];
  const T* grad = x[1];
  auto loop = [&](auto divisor) {
    TN_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
      const T g = decayed(c, grad[i], p[i]), first = m[i] + c.grow1 * (g - m[i]),
              second = c.beta2 * v[i] + c.grow2 * (g * g);
      m[i] = first;
      v[i] = second;
      p[i] = p[i] * c.shrink - c.rate * first / divisor(second);
    }
  };
  if (c.adaptive) {
    loop([eps = c.eps](T second) { return std::sqrt(second) + eps; });
  } else {
    loop([](T) { return T(1); });
  }
}

const sdk::Kernel radam_steps({"radam_step"}, [](tn_device*, const Request& request) {
  const auto r = sdk::RadamRequest::from(request);
  return with_float(computed_as(r.dtype),
                    [&]<class T>(T) { return plan_of<T>(request, r, 0.5, radam<T>); });
});

template <class T>
void lion(T* const* x, int64_t n, sdk::LionNumbers<T> c) {
  T *p = x[0], *m = x[2];
  const T* grad = x[1];
  TN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const T g = c.sign * grad[i], towards = c.beta1 * m[i] + c.grow1 * g;
    const T change = towards > T(0) ? c.lr : towards < T(0) ? -c.lr : T(0);
    p[i] = p[i] * c.shrink - change;
    m[i] = c.beta2 * m[i] + c.grow2 * g;
  }
}

const sdk::Kernel lion_steps({"lion_step"}, [](tn_device*, const Request& request) {
  const auto r = sdk::LionRequest::from(request);
  return with_float(computed_as(r.dtype),
                    [&]<class T>(T) { return plan_of<T>(request, r, 0.3, lion<T>); });
});

}  // namespace
}  // namespace tenon::cpu
