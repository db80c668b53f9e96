// SGD, Adam and AdamW.
#include <cmath>

#include "kernels/optimizer/steps.h"

namespace tenon::cpu {
namespace {

// Calls loop(decayed): decayed(gradient, parameter) is the gradient with weight decay. Where there
// is none, 0 times an infinite parameter must not become NaN.
template <class T, class Loop>
void without_decay_or_with(T decay, Loop&& loop) {
  if (decay == T(0)) {
    loop([](T g, T) { return g; });
  } else {
    loop([decay](T g, T w) { return g + decay * w; });
  }
}

template <class T, bool Momentum, bool Nesterov>
void sgd(T* const* x, int64_t n, sdk::SgdNumbers<T> c) {
  T *p = x[0], *buffer = Momentum ? x[2] : nullptr;
  const T* grad = x[1];
  auto loop = [&](auto decayed) {
    TN_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
      T g = decayed(c.sign * grad[i], p[i]);
      if constexpr (Momentum) {
        T b = c.first ? g : c.momentum * buffer[i] + c.keep * g;
        buffer[i] = b;
        g = Nesterov ? g + c.momentum * b : b;
      }
      p[i] -= c.lr * g;
    }
  };
  without_decay_or_with(c.decay, loop);
}

const sdk::Kernel sgd_steps({"sgd_step"}, [](tn_device*, const Request& request) {
  const auto r = sdk::SgdRequest::from(request);
  return with_float(computed_as(r.dtype), [&]<class T>(T) {
    return plan_of<T>(request, r, r.momentum ? 0.2 : 0.12,
                      !r.momentum  ? sgd<T, false, false>
                      : r.nesterov ? sgd<T, true, true>
                                   : sgd<T, true, false>);
  });
});

template <class T, bool Amsgrad>
void adam(T* const* x, int64_t n, sdk::AdamNumbers<T> c) {
  T *p = x[0], *m = x[2], *v = x[3], *vmax = Amsgrad ? x[4] : nullptr;
  const T* grad = x[1];
  auto loop = [&](auto decayed) {
    TN_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
      T w = p[i] * c.shrink, g = decayed(c.sign * grad[i], w);
      m[i] += c.grow1 * (g - m[i]);
      T second = c.beta2 * v[i] + c.grow2 * (g * g);
      v[i] = second;
      if constexpr (Amsgrad) {
        second = vmax[i] > second ? vmax[i] : second;
        vmax[i] = second;
      }
      p[i] = w - c.step_size * m[i] / (std::sqrt(second) / c.root_bias2 + c.eps);
    }
  };
  without_decay_or_with(c.decay, loop);
}

const sdk::Kernel adam_steps({"adam_step"}, [](tn_device*, const Request& request) {
  const auto r = sdk::AdamRequest::from(request);
  return with_float(computed_as(r.dtype), [&]<class T>(T) {
    return plan_of<T>(request, r, 0.5, r.amsgrad ? adam<T, true> : adam<T, false>);
  });
});

}  // namespace
}  // namespace tenon::cpu
