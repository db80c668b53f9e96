// RMSprop, Adagrad, NAdam, RAdam and Lion.
#include <cmath>

#include "kernels/optimizer/steps.h"

namespace tenon::cuda {
namespace {

// The factory of a step that has one kernel for each dtype.
template <class Asked, template <class> class Step>
tn_plan* make_step(tn_device*, const Request& request) {
  const auto r = Asked::from(request);
  return with_float(r.dtype, [&]<class T>(T) { return plan_of<Step<T>>(request, r); });
}

// Without a decay the parameter does not count, not even where it is infinite.
template <class T, class Numbers>
__device__ inline T decayed(const Numbers& c, T grad, T p) {
  return c.decay == T(0) ? c.sign * grad : c.sign * grad + c.decay * p;
}

// x: parameter, gradient, average of squares, of gradients if centered, momentum buffer
template <class Number, bool Centered, bool Momentum>
struct Rmsprop : sdk::RmspropNumbers<Number> {
  using T = Number;
  static constexpr int kTensors = 3 + Centered + Momentum;
  __device__ bool reads(int) const { return true; }
  __device__ void operator()(T (&x)[kTensors]) const {
    const T g = decayed(*this, x[1], x[0]), second = this->alpha * x[2] + this->grow * (g * g);
    x[2] = second;
    T variance = second;
    if constexpr (Centered) {
      const T m = this->alpha * x[3] + this->grow * g, difference = second - m * m;
      x[3] = m;
      variance = difference < T(0) ? T(0) : difference;
    }
    T change = g / (std::sqrt(variance) + this->eps);
    if constexpr (Momentum) {
      change = this->momentum * x[kTensors - 1] + change;
      x[kTensors - 1] = change;
    }
    x[0] -= this->lr * change;
  }
};

const sdk::Kernel rmsprop_steps({"rmsprop_step"}, [](tn_device*, const Request& request) {
  const auto r = sdk::RmspropRequest::from(request);
  return with_float(r.dtype, [&]<class T>(T) {
    if (r.centered)
      return r.momentum ? plan_of<Rmsprop<T, true, true>>(request, r)
                        : plan_of<Rmsprop<T, true, false>>(request, r);
    return r.momentum ? plan_of<Rmsprop<T, false, true>>(request, r)
                      : plan_of<Rmsprop<T, false, false>>(request, r);
  });
});

// x: parameter, gradient, sum of squares
template <class Number>
struct Adagrad : sdk::AdagradNumbers<Number> {
  using T = Number;
  static constexpr int kTensors = 3;
  __device__ bool reads(int) const { return true; }
  __device__ void operator()(T (&x)[kTensors]) const {
    const T g = decayed(*this, x[1], x[0]), sum = x[2] + g * g;
    x[2] = sum;
    x[0] -= this->rate * g / (std::sqrt(sum) + this->eps);
  }
};

const sdk::Kernel adagrad_steps({"adagrad_step"}, make_step<sdk::AdagradRequest, Adagrad>);

// x: parameter, gradient, first moment, second moment
template <class Number>
struct Nadam : sdk::NadamNumbers<Number> {
  using T = Number;
  static constexpr int kTensors = 4;
  __device__ bool reads(int) const { return true; }
  __device__ void operator()(T (&x)[kTensors]) const {
    const T g = decayed(*this, x[1], x[0]), first = x[2] + this->grow1 * (g - x[2]),
            second = this->beta2 * x[3] + this->grow2 * (g * g);
    x[2] = first;
    x[3] = second;
    x[0] = x[0] * this->shrink - (this->grad_rate * g + this->average_rate * first) /
                                     (std::sqrt(second) / this->root_bias2 + this->eps);
  }
};

const sdk::Kernel nadam_steps({"nadam_step"}, make_step<sdk::NadamRequest, Nadam>);

// x: parameter, gradient, first moment, second moment
template <class Number>
struct Radam : sdk::RadamNumbers<Number> {
  using T = Number;
  static constexpr int kTensors = 4;
  __device__ bool reads(int) const { return true; }
  __device__ void operator()(T (&x)[kTensors]) const {
    const T g = decayed(*this, x[1], x[0]), first = x[2] + this->grow1 * (g - x[2]),
            second = this->beta2 * x[3] + this->grow2 * (g * g);
    x[2] = first;
    x[3] = second;
    const T divisor = this->adaptive ? std::sqrt(second) + this->eps : T(1);
    x[0] = x[0] * this->shrink - this->rate * first / divisor;
  }
};

const sdk::Kernel radam_steps({"radam_step"}, make_step<sdk::RadamRequest, Radam>);

// x: parameter, gradient, average
template <class Number>
struct Lion : sdk::LionNumbers<Number> {
  using T = Number;
  static constexpr int kTensors = 3;
  __device__ bool reads(int) const { return true; }
  __device__ void operator()(T (&x)[kTensors]) const {
    const T g = this->sign * x[1], towards = this->beta1 * x[2] + this->grow1 * g;
    const T change = towards > T(0) ? this->lr : towards < T(0) ? -this->lr : T(0);
    x[0] = x[0] * this->shrink - change;
    x[2] = this->beta2 * x[2] + this->grow2 * g;
  }
};

const sdk::Kernel lion_steps({"lion_step"}, make_step<sdk::LionRequest, Lion>);

}  // namespace
}  // namespace tenon::cuda
