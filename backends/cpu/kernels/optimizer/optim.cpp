// Optimizer steps over all parameters at once: one pass over memory, shared out by elements,
// whatever tensor they are in.
#include <cmath>
#include <cstring>

#include <tenon/plugins/sdk/requests/optimizer.h>

#include "kernels/pointwise/pointwise.h"

namespace tenon::cpu {
namespace {

// The n parameters laid end to end.
class Segments {
 public:
  Segments(const Request& request, size_t n) : starts_(1, 0) {
    for (size_t i = 0; i < n; ++i) starts_.push_back(starts_.back() + sdk::numel(request.input(i)));
  }
  int64_t total() const { return starts_.back(); }

  // f(tensor, begin, end) for each piece of [begin, end), in parallel.
  template <class F>
  void each(F&& f) const {
    parallel_for(total(), kGrain / 2, [&](int64_t begin, int64_t end, uint32_t) {
      size_t i = static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), begin) -
                                     starts_.begin()) -
                 1;
      for (; begin < end; ++i) {
        int64_t stop = std::min(end, starts_[i + 1]);
        if (begin < stop) f(i, begin - starts_[i], stop - starts_[i]);
        begin = std::max(begin, stop);
      }
    });
  }

 private:
  std::vector<int64_t> starts_;
};

// `step` for all parameters; x[0] is a parameter's part, x[1] its gradient's, then its state's.
template <class T, class R>
tn_plan* plan_of(const Request& request, const R& r, double ns,
                 void (*step)(T* const* x, int64_t n, decltype(r.template numbers<T>(nullptr)) c)) {
  const Segments segments(request, r.n);
  const size_t tensors = request.num_inputs() / r.n;
  const auto cost =
      50 + 5 * r.n + static_cast<uint64_t>(ns * static_cast<double>(segments.total()));
  auto run = [=](const tn_run& run) {
    const auto numbers = r.template numbers<T>(run.scalars);
    segments.each([&](size_t i, int64_t begin, int64_t end) {
      T* x[5];
      for (size_t t = 0; t < tensors; ++t) x[t] = static_cast<T*>(run.inputs[t * r.n + i]) + begin;
      step(x, end - begin, numbers);
    });
  };
  return sdk::make_plan(std::move(run), {0, cost});
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
  if (c.decay == T(0)) {
    loop([](T g, T) { return g; });
  } else {
    loop([decay = c.decay](T g, T w) { return g + decay * w; });
  }
}

const sdk::Kernel sgd_steps({"sgd_step"}, [](tn_device*, const Request& request) {
  const auto r = sdk::SgdRequest::from(request);
  return with_float(r.dtype, [&]<class T>(T) {
    return plan_of<T>(request, r, 0.6,
                      !r.momentum  ? sgd<T, false, false>
                      : r.nesterov ? sgd<T, true, true>
                                   : sgd<T, true, false>);
  });
});

template <class T, bool Amsgrad>
void adam(T* const* x, int64_t n, sdk::AdamNumbers<T> c) {
  T *p = x[0], *m = x[2], *v = x[3], *vmax = Amsgrad ? x[4] : nullptr;
  const T* grad = x[1];
  TN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    T w = p[i] * c.shrink, g = c.sign * grad[i] + c.decay * w;
    m[i] += c.grow1 * (g - m[i]);
    T second = c.beta2 * v[i] + c.grow2 * (g * g);
    v[i] = second;
    if constexpr (Amsgrad) {
      second = vmax[i] > second ? vmax[i] : second;
      vmax[i] = second;
    }
    p[i] = w - c.step_size * m[i] / (std::sqrt(second) / c.root_bias2 + c.eps);
  }
}

const sdk::Kernel adam_steps({"adam_step"}, [](tn_device*, const Request& request) {
  const auto r = sdk::AdamRequest::from(request);
  return with_float(r.dtype, [&]<class T>(T) {
    return plan_of<T>(request, r, 1.2, r.amsgrad ? adam<T, true> : adam<T, false>);
  });
});

}  // namespace
}  // namespace tenon::cpu
