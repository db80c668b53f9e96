// SGD, Adam and AdamW.
#include <cmath>

#include "kernels/optimizer/steps.h"

namespace tenon::cuda {
namespace {

// x: parameter, gradient, momentum buffer
template <class Number, bool Momentum, bool Nesterov>
struct Sgd : sdk::SgdNumbers<Number> {
  using T = Number;
  static constexpr int kTensors = Momentum ? 3 : 2;
  __device__ bool reads(int tensor) const { return tensor < 2 || !this->first; }
  __device__ void operator()(T (&x)[kTensors]) const {
    T g = this->sign * x[1];
    if (this->decay != T(0)) g += this->decay * x[0];
    if constexpr (Momentum) {
      T b = this->first ? g : this->momentum * x[2] + this->keep * g;
      x[2] = b;
      g = Nesterov ? g + this->momentum * b : b;
    }
    x[0] -= this->lr * g;
  }
};

const sdk::Kernel sgd_steps({"sgd_step"}, [](tn_device*, const Request& request) {
  const auto r = sdk::SgdRequest::from(request);
  return with_float(r.dtype, [&]<class T>(T) {
    return !r.momentum  ? plan_of<Sgd<T, false, false>>(request, r)
           : r.nesterov ? plan_of<Sgd<T, true, true>>(request, r)
                        : plan_of<Sgd<T, true, false>>(request, r);
  });
});

// x: parameter, gradient, first moment, second moment, its maximum
template <class Number, bool Amsgrad>
struct Adam : sdk::AdamNumbers<Number> {
  using T = Number;
  static constexpr int kTensors = Amsgrad ? 5 : 4;
  __device__ bool reads(int) const { return true; }
  __device__ void operator()(T (&x)[kTensors]) const {
    T w = x[0] * this->shrink, g = this->sign * x[1];
    if (this->decay != T(0)) g += this->decay * w;
    T m = x[2] + this->grow1 * (g - x[2]);
    T second = this->beta2 * x[3] + this->grow2 * (g * g);
    x[2] = m;
    x[3] = second;
    if constexpr (Amsgrad) {
      second = x[4] > second ? x[4] : second;
      x[4] = second;
    }
    x[0] = w - this->step_size * m / (std::sqrt(second) / this->root_bias2 + this->eps);
  }
};

const sdk::Kernel adam_steps({"adam_step"}, [](tn_device*, const Request& request) {
  const auto r = sdk::AdamRequest::from(request);
  return with_float(r.dtype, [&]<class T>(T) {
    return r.amsgrad ? plan_of<Adam<T, true>>(request, r) : plan_of<Adam<T, false>>(request, r);
  });
});

}  // namespace
}  // namespace tenon::cuda
