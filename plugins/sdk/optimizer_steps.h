// What the steps of optimizers do with one element, alike on every device. Each takes the values x
// of an element (parameter, gradient, then the state, in the order of the request) and replaces
// them; the gradient stays as it is. It is made of the numbers of a run (requests/optimizer.h).
#pragma once

#include <cmath>

#include <tenon/plugins/sdk/host_device.h>
#include <tenon/plugins/sdk/requests/optimizer.h>

namespace tenon::sdk::steps {

// Returns the gradient with weight decay. Without a decay the parameter does not count, not even if
// it is infinite.
template <class Numbers, class T>
TN_HD T decayed(const Numbers& c, T grad, T p) {
  return c.decay == T(0) ? c.sign * grad : c.sign * grad + c.decay * p;
}

// x: parameter, gradient, momentum buffer
template <class Number, bool Momentum, bool Nesterov>
struct Sgd : SgdNumbers<Number> {
  using T = Number;
  static constexpr int kTensors = Momentum ? 3 : 2;
  // Whether the step depends on the values of this tensor.
  TN_HD bool reads(int tensor) const { return tensor < 2 || !this->first; }
  TN_HD void operator()(T (&x)[kTensors]) const {
    T g = decayed(*this, x[1], x[0]);
    if constexpr (Momentum) {
      const T b = this->first ? g : this->momentum * x[2] + this->keep * g;
      x[2] = b;
      g = Nesterov ? g + this->momentum * b : b;
    }
    x[0] -= this->lr * g;
  }
};

// x: parameter, gradient, first moment, second moment, its maximum
template <class Number, bool Amsgrad>
struct Adam : AdamNumbers<Number> {
  using T = Number;
  static constexpr int kTensors = Amsgrad ? 5 : 4;
  TN_HD bool reads(int) const { return true; }
  TN_HD void operator()(T (&x)[kTensors]) const {
    const T w = x[0] * this->shrink, g = decayed(*this, x[1], w),
            m = x[2] + this->grow1 * (g - x[2]);
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

// x: parameter, gradient, average of squares, of gradients if centered, momentum buffer
template <class Number, bool Centered, bool Momentum>
struct Rmsprop : RmspropNumbers<Number> {
  using T = Number;
  static constexpr int kTensors = 3 + Centered + Momentum;
  TN_HD bool reads(int) const { return true; }
  TN_HD void operator()(T (&x)[kTensors]) const {
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

// x: parameter, gradient, sum of squares
template <class Number>
struct Adagrad : AdagradNumbers<Number> {
  using T = Number;
  static constexpr int kTensors = 3;
  TN_HD bool reads(int) const { return true; }
  TN_HD void operator()(T (&x)[kTensors]) const {
    const T g = decayed(*this, x[1], x[0]), sum = x[2] + g * g;
    x[2] = sum;
    x[0] -= this->rate * g / (std::sqrt(sum) + this->eps);
  }
};

// x: parameter, gradient, first moment, second moment
template <class Number>
struct Nadam : NadamNumbers<Number> {
  using T = Number;
  static constexpr int kTensors = 4;
  TN_HD bool reads(int) const { return true; }
  TN_HD void operator()(T (&x)[kTensors]) const {
    const T g = decayed(*this, x[1], x[0]), first = x[2] + this->grow1 * (g - x[2]),
            second = this->beta2 * x[3] + this->grow2 * (g * g);
    x[2] = first;
    x[3] = second;
    x[0] = x[0] * this->shrink - (this->grad_rate * g + this->average_rate * first) /
                                     (std::sqrt(second) / this->root_bias2 + this->eps);
  }
};

// x: parameter, gradient, first moment, second moment
template <class Number>
struct Radam : RadamNumbers<Number> {
  using T = Number;
  static constexpr int kTensors = 4;
  TN_HD bool reads(int) const { return true; }
  TN_HD void operator()(T (&x)[kTensors]) const {
    const T g = decayed(*this, x[1], x[0]), first = x[2] + this->grow1 * (g - x[2]),
            second = this->beta2 * x[3] + this->grow2 * (g * g);
    x[2] = first;
    x[3] = second;
    const T divisor = this->adaptive ? std::sqrt(second) + this->eps : T(1);
    x[0] = x[0] * this->shrink - this->rate * first / divisor;
  }
};

// x: parameter, gradient, average
template <class Number>
struct Lion : LionNumbers<Number> {
  using T = Number;
  static constexpr int kTensors = 3;
  TN_HD bool reads(int) const { return true; }
  TN_HD void operator()(T (&x)[kTensors]) const {
    const T g = this->sign * x[1], towards = this->beta1 * x[2] + this->grow1 * g;
    const T change = towards > T(0) ? this->lr : towards < T(0) ? -this->lr : T(0);
    x[0] = x[0] * this->shrink - change;
    x[2] = this->beta2 * x[2] + this->grow2 * g;
  }
};

}  // namespace tenon::sdk::steps
