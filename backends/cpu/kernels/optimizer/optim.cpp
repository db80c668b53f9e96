// Optimizer steps over all parameters at once: one pass over memory, shared out by elements,
// whatever tensor they are in. Formulas: PyTorch's documentation of torch.optim.SGD, Adam and
// AdamW.
#include <cmath>
#include <cstring>

#include "kernels/pointwise/pointwise.h"

namespace tenon::cpu {
namespace {

// The n parameters laid end to end.
class Segments {
 public:
  Segments(const Request& request, size_t n) : starts_(1, 0) {
    for (size_t i = 0; i < request.num_inputs(); ++i) {
      auto& d = request.input(i);
      require_contiguous(request, d);
      if (d.dtype != request.input(0).dtype || sdk::numel(d) != sdk::numel(request.input(i % n)))
        sdk::invalid("input " + std::to_string(i) + " does not fit its parameter");
    }
    for (size_t i = 0; i < n; ++i) starts_.push_back(starts_.back() + sdk::numel(request.input(i)));
  }
  int64_t total() const { return starts_.back(); }
  size_t count() const { return starts_.size() - 1; }

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

size_t parameter_count(const Request& request, size_t least_per_parameter) {
  int64_t n = request.get_int("n");
  if (n < 1 || static_cast<size_t>(n) > request.num_inputs() / least_per_parameter ||
      request.num_inputs() % static_cast<size_t>(n) != 0)
    sdk::invalid("n = " + std::to_string(n) + " does not fit " +
                 std::to_string(request.num_inputs()) + " inputs");
  return static_cast<size_t>(n);
}

template <class T>
struct SgdNumbers {
  T lr, momentum, keep, decay, sign;  // keep: 1 - dampening
};

template <class T, bool Momentum, bool Nesterov>
void sgd(T* p, const T* grad, T* buffer, int64_t n, bool first, const SgdNumbers<T>& c) {
  auto loop = [&](auto decayed) {
    TN_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
      T g = decayed(c.sign * grad[i], p[i]);
      if constexpr (Momentum) {
        T b = first ? g : c.momentum * buffer[i] + c.keep * g;
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

template <class T>
tn_plan* plan_sgd(const Request& request) {
  size_t n = parameter_count(request, 2);
  bool has_momentum = request.num_inputs() == 3 * n, nesterov = request.get_bool("nesterov"),
       maximize = request.get_bool("maximize");
  Segments segments(request, n);
  auto step = !has_momentum ? sgd<T, false, false>
              : nesterov    ? sgd<T, true, true>
                            : sgd<T, true, false>;
  uint64_t cost = 50 + 5 * n + static_cast<uint64_t>(0.6 * static_cast<double>(segments.total()));
  auto run = [=](const tn_run& run) {
    auto* s = run.scalars;
    SgdNumbers<T> c{static_cast<T>(s[0].f), static_cast<T>(s[1].f), static_cast<T>(1 - s[2].f),
                    static_cast<T>(s[3].f), T(maximize ? -1 : 1)};
    bool first = s[4].i != 0;
    segments.each([&](size_t i, int64_t begin, int64_t end) {
      auto* p = static_cast<T*>(run.outputs[i]) + begin;
      auto* g = static_cast<const T*>(run.inputs[n + i]) + begin;
      auto* m = has_momentum ? static_cast<T*>(run.outputs[n + i]) + begin : nullptr;
      step(p, g, m, end - begin, first, c);
    });
  };
  return sdk::make_plan(std::move(run), {0, cost});
}
const sdk::Kernel sgd_steps({"sgd_step"}, [](tn_device*, const Request& request) {
  return with_float(request, request.input(0).dtype,
                    [&]<class T>(T) { return plan_sgd<T>(request); });
});

template <class T>
struct AdamNumbers {
  T grow1, beta2, grow2, eps, step_size, root_bias2, decay, shrink, sign;  // grow: 1 - beta
};

template <class T, bool Amsgrad>
void adam(T* p, const T* grad, T* m, T* v, T* vmax, int64_t n, const AdamNumbers<T>& c) {
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

template <class T>
AdamNumbers<T> adam_numbers(const tn_scalar* s, bool decoupled, bool maximize) {
  double lr = s[0].f, beta1 = s[1].f, beta2 = s[2].f, decay = s[4].f,
         step = static_cast<double>(s[5].i);
  double bias1 = 1 - std::pow(beta1, step), bias2 = 1 - std::pow(beta2, step);
  return {static_cast<T>(1 - beta1),
          static_cast<T>(beta2),
          static_cast<T>(1 - beta2),
          static_cast<T>(s[3].f),
          static_cast<T>(lr / bias1),
          static_cast<T>(std::sqrt(bias2)),
          static_cast<T>(decoupled ? 0 : decay),
          static_cast<T>(decoupled ? 1 - lr * decay : 1),
          T(maximize ? -1 : 1)};
}

template <class T>
tn_plan* plan_adam(const Request& request) {
  size_t n = parameter_count(request, 4);
  bool amsgrad = request.get_bool("amsgrad"), decoupled = request.get_bool("decoupled"),
       maximize = request.get_bool("maximize");
  if (request.num_inputs() != (amsgrad ? 5 : 4) * n)
    throw sdk::Error(TN_CODE_INVALID_ARGUMENT, "adam_step: vmax and amsgrad do not agree");
  Segments segments(request, n);
  auto step = amsgrad ? adam<T, true> : adam<T, false>;
  uint64_t cost = 50 + 5 * n + static_cast<uint64_t>(1.2 * static_cast<double>(segments.total()));
  auto run = [=](const tn_run& run) {
    auto numbers = adam_numbers<T>(run.scalars, decoupled, maximize);
    segments.each([&](size_t i, int64_t begin, int64_t end) {
      auto at = [&](void* const* list, size_t which) {
        return static_cast<T*>(list[which * n + i]) + begin;
      };
      step(at(run.outputs, 0), at(run.inputs, 1), at(run.outputs, 1), at(run.outputs, 2),
           amsgrad ? at(run.outputs, 3) : nullptr, end - begin, numbers);
    });
  };
  return sdk::make_plan(std::move(run), {0, cost});
}
const sdk::Kernel adam_steps({"adam_step"}, [](tn_device*, const Request& request) {
  return with_float(request, request.input(0).dtype,
                    [&]<class T>(T) { return plan_adam<T>(request); });
});

}  // namespace
}  // namespace tenon::cpu
