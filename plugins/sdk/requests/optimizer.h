// The steps of optimizers ("sgd_step", "adam_step", …), read and checked once for every plugin,
// with the numbers that the scalars of a run amount to. Formulas: PyTorch's documentation of
// torch.optim, and docs/operators.md.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include <tenon/plugins/sdk/requests/checks.h>

namespace tenon::sdk {

// `n` parameters, then as many gradients, then the state. Tensor i of the request belongs to
// parameter i % n, and all of them are contiguous. The outputs are the parameters and the state,
// updated in place.
struct StepRequest {
  tn_dtype dtype;
  size_t n;
  bool maximize;

  // With `least_per_parameter` inputs of each parameter, and `scalars` numbers for each run.
  static StepRequest from(const Request& request, size_t least_per_parameter, size_t scalars) {
    require_scalars(request, scalars);
    const int64_t n = request.get_int("n");
    const size_t all = request.num_inputs();
    if (n < 1 || static_cast<size_t>(n) > all / least_per_parameter ||
        all % static_cast<size_t>(n) != 0)
      invalid("n = {} does not fit {} inputs", n, all);
    const StepRequest r{request.input(0).dtype, static_cast<size_t>(n),
                        request.get_bool("maximize")};
    for (size_t i = 0; i < all; ++i) {
      auto& d = request.input(i);
      require_contiguous(d);
      if (d.dtype != r.dtype || numel(d) != numel(request.input(i % r.n)))
        invalid("input {} does not fit its parameter", i);
    }
    if (request.num_outputs() != all - r.n)
      invalid("{} inputs have {} outputs, found {}", all, all - r.n, request.num_outputs());
    for (size_t i = 0; i < all - r.n; ++i) {
      const size_t input = i < r.n ? i : i + r.n;  // there are no outputs for the gradients
      auto& y = request.output(i);
      if (request.alias(i) != static_cast<int32_t>(input) || y.dtype != r.dtype ||
          !same_shape(y, request.input(input)))
        invalid("output {} is not input {}, updated in place", i, input);
    }
    return r;
  }
};

template <class T>
struct SgdNumbers {
  T lr, momentum, keep, decay, sign;  // keep: 1 - dampening
  bool first;                         // the momentum buffers are empty as yet
};

struct SgdRequest : StepRequest {
  bool momentum, nesterov;

  static SgdRequest from(const Request& request) {
    const auto step = StepRequest::from(request, 2, 5);
    if (request.num_inputs() > 3 * step.n)
      invalid("takes parameters, gradients and, with momentum, a buffer for each");
    return {step, request.num_inputs() == 3 * step.n, request.get_bool("nesterov")};
  }
  template <class T>
  SgdNumbers<T> numbers(const tn_scalar* s) const {
    return {static_cast<T>(s[0].f), static_cast<T>(s[1].f), static_cast<T>(1 - s[2].f),
            static_cast<T>(s[3].f), T(maximize ? -1 : 1),   s[4].i != 0};
  }
};

template <class T>
struct AdamNumbers {
  T grow1, beta2, grow2, eps, step_size, root_bias2, decay, shrink, sign;  // grow: 1 - beta
};

struct AdamRequest : StepRequest {
  bool amsgrad, decoupled;  // decoupled: AdamW

  static AdamRequest from(const Request& request) {
    const AdamRequest r{StepRequest::from(request, 4, 6), request.get_bool("amsgrad"),
                        request.get_bool("decoupled")};
    if (request.num_inputs() != (r.amsgrad ? 5 : 4) * r.n)
      invalid("the largest second moments are there where amsgrad is, and nowhere else");
    return r;
  }
  template <class T>
  AdamNumbers<T> numbers(const tn_scalar* s) const {
    const double lr = s[0].f, beta1 = s[1].f, beta2 = s[2].f, weight_decay = s[4].f,
                 step = static_cast<double>(s[5].i);
    const double bias1 = 1 - std::pow(beta1, step), bias2 = 1 - std::pow(beta2, step);
    return {static_cast<T>(1 - beta1),
            static_cast<T>(beta2),
            static_cast<T>(1 - beta2),
            static_cast<T>(s[3].f),
            static_cast<T>(lr / bias1),
            static_cast<T>(std::sqrt(bias2)),
            static_cast<T>(decoupled ? 0 : weight_decay),
            static_cast<T>(decoupled ? 1 - lr * weight_decay : 1),
            T(maximize ? -1 : 1)};
  }
};

template <class T>
struct RmspropNumbers {
  T lr, alpha, grow, eps, decay, momentum, sign;  // grow: 1 - alpha
};

// After the averages of squares come those of gradients, if `centered`, and then the buffers of the
// momentum, if there is one.
struct RmspropRequest : StepRequest {
  bool centered, momentum;

  static RmspropRequest from(const Request& request) {
    const RmspropRequest r{StepRequest::from(request, 3, 5), request.get_bool("centered"),
                           request.get_bool("momentum")};
    const size_t lists = size_t{3} + r.centered + r.momentum;
    if (request.num_inputs() != lists * r.n)
      invalid("with these attributes there are {} tensors of each parameter, found {}", lists,
              request.num_inputs() / r.n);
    return r;
  }
  template <class T>
  RmspropNumbers<T> numbers(const tn_scalar* s) const {
    return {static_cast<T>(s[0].f), static_cast<T>(s[1].f), static_cast<T>(1 - s[1].f),
            static_cast<T>(s[2].f), static_cast<T>(s[3].f), static_cast<T>(s[4].f),
            T(maximize ? -1 : 1)};
  }
};

// A step with one list of tensors for each of `Lists`, and `Scalars` numbers for each run.
template <size_t Lists, size_t Scalars>
struct PlainStepRequest : StepRequest {
  static StepRequest read(const Request& request) {
    const auto r = StepRequest::from(request, Lists, Scalars);
    if (request.num_inputs() != Lists * r.n)
      invalid("there are {} tensors of each parameter, found {}", Lists,
              request.num_inputs() / r.n);
    return {r};
  }
};

template <class T>
struct AdagradNumbers {
  T rate, eps, decay, sign;
};

// Parameters, gradients, sums of squares.
struct AdagradRequest : PlainStepRequest<3, 3> {
  static AdagradRequest from(const Request& request) { return {read(request)}; }
  template <class T>
  AdagradNumbers<T> numbers(const tn_scalar* s) const {
    return {static_cast<T>(s[0].f), static_cast<T>(s[1].f), static_cast<T>(s[2].f),
            T(maximize ? -1 : 1)};
  }
};

template <class T>
struct NadamNumbers {
  T grow1, beta2, grow2, eps, decay, shrink, grad_rate, average_rate, root_bias2, sign;
};

// Parameters, gradients, first and second moments.
struct NadamRequest : PlainStepRequest<4, 8> {
  static NadamRequest from(const Request& request) { return {read(request)}; }
  template <class T>
  NadamNumbers<T> numbers(const tn_scalar* s) const {
    return {static_cast<T>(1 - s[0].f), static_cast<T>(s[1].f), static_cast<T>(1 - s[1].f),
            static_cast<T>(s[2].f),     static_cast<T>(s[3].f), static_cast<T>(s[4].f),
            static_cast<T>(s[5].f),     static_cast<T>(s[6].f), static_cast<T>(s[7].f),
            T(maximize ? -1 : 1)};
  }
};

template <class T>
struct RadamNumbers {
  T grow1, beta2, grow2, eps, decay, shrink, rate, sign;
  bool adaptive;  // whether the step is divided by the root of the second moment
};

// Parameters, gradients, first and second moments.
struct RadamRequest : PlainStepRequest<4, 7> {
  static RadamRequest from(const Request& request) { return {read(request)}; }
  template <class T>
  RadamNumbers<T> numbers(const tn_scalar* s) const {
    return {static_cast<T>(1 - s[0].f), static_cast<T>(s[1].f), static_cast<T>(1 - s[1].f),
            static_cast<T>(s[2].f),     static_cast<T>(s[3].f), static_cast<T>(s[4].f),
            static_cast<T>(s[5].f),     T(maximize ? -1 : 1),   s[6].i != 0};
  }
};

template <class T>
struct LionNumbers {
  T lr, beta1, grow1, beta2, grow2, shrink, sign;
};

// Parameters, gradients, averages.
struct LionRequest : PlainStepRequest<3, 4> {
  static LionRequest from(const Request& request) { return {read(request)}; }
  template <class T>
  LionNumbers<T> numbers(const tn_scalar* s) const {
    return {static_cast<T>(s[0].f), static_cast<T>(s[1].f),     static_cast<T>(1 - s[1].f),
            static_cast<T>(s[2].f), static_cast<T>(1 - s[2].f), static_cast<T>(s[3].f),
            T(maximize ? -1 : 1)};
  }
};

}  // namespace tenon::sdk
