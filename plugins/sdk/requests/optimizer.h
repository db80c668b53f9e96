// The steps of optimizers ("sgd_step", "adam_step", …), read and checked once for every plugin,
// with the numbers that the scalars of a run amount to. Each `from` reads a request. It throws
// TN_CODE_INVALID_ARGUMENT if its tensors or attributes do not fit together, and
// TN_CODE_UNSUPPORTED if a tensor is not contiguous. Formulas: PyTorch's documentation of
// torch.optim, and docs/operators.md.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include <tenon/plugins/sdk/requests/checks.h>

namespace tenon::sdk {

// A request of a step: `n` parameters, then as many gradients, then the state. Tensor i of the
// request belongs to parameter i % n, and all of them are contiguous. The outputs are the
// parameters and the state, updated in place.
struct StepRequest {
  tn_dtype dtype;
  size_t n;
  bool maximize;

  // Reads a request with at least `least_per_parameter` inputs for each parameter, and `scalars`
  // numbers for each run.
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

// The numbers of "sgd_step": `keep` is 1 - dampening, and `sign` -1 if the objective is maximized,
// as in all steps below. `first` says that the momentum buffers are still empty.
template <class T>
struct SgdNumbers {
  T lr, momentum, keep, decay, sign;
  bool first;
};

// A request of "sgd_step": the state is a buffer for each parameter, if there is momentum.
struct SgdRequest : StepRequest {
  bool momentum, nesterov;

  // Reads a request of parameters, gradients and, with momentum, buffers.
  static SgdRequest from(const Request& request) {
    const auto step = StepRequest::from(request, 2, 5);
    if (request.num_inputs() > 3 * step.n)
      invalid("takes parameters, gradients and, with momentum, a buffer for each");
    return {step, request.num_inputs() == 3 * step.n, request.get_bool("nesterov")};
  }
  // Returns the numbers of a run, whose scalars are rate, momentum, dampening, weight decay, and
  // whether the step is the first.
  template <class T>
  SgdNumbers<T> numbers(const tn_scalar* s) const {
    return {static_cast<T>(s[0].f), static_cast<T>(s[1].f), static_cast<T>(1 - s[2].f),
            static_cast<T>(s[3].f), T(maximize ? -1 : 1),   s[4].i != 0};
  }
};

// The numbers of "adam_step": `grow` is 1 - beta, `step_size` the rate divided by the first bias
// correction, `root_bias2` the root of the second, and `shrink` the factor of decoupled weight
// decay.
template <class T>
struct AdamNumbers {
  T grow1, beta2, grow2, eps, step_size, root_bias2, decay, shrink, sign;
};

// A request of "adam_step": the state is first and second moments, and with amsgrad the largest
// second moments. `decoupled` says that it is AdamW.
struct AdamRequest : StepRequest {
  bool amsgrad, decoupled;

  // Reads a request of four tensors for each parameter, or five with amsgrad.
  static AdamRequest from(const Request& request) {
    const AdamRequest r{StepRequest::from(request, 4, 6), request.get_bool("amsgrad"),
                        request.get_bool("decoupled")};
    if (request.num_inputs() != (r.amsgrad ? 5 : 4) * r.n)
      invalid("the largest second moments are there where amsgrad is, and nowhere else");
    return r;
  }
  // Returns the numbers of a run, whose scalars are rate, beta1, beta2, eps, weight decay and the
  // number of the step.
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

// The numbers of "rmsprop_step": `grow` is 1 - alpha.
template <class T>
struct RmspropNumbers {
  T lr, alpha, grow, eps, decay, momentum, sign;
};

// A request of "rmsprop_step": the state is averages of squares, then those of gradients, if
// `centered`, and then the buffers of the momentum, if there is one.
struct RmspropRequest : StepRequest {
  bool centered, momentum;

  // Reads a request of three tensors for each parameter, and one more for `centered` and `momentum`
  // each.
  static RmspropRequest from(const Request& request) {
    const RmspropRequest r{StepRequest::from(request, 3, 5), request.get_bool("centered"),
                           request.get_bool("momentum")};
    const size_t lists = size_t{3} + r.centered + r.momentum;
    if (request.num_inputs() != lists * r.n)
      invalid("with these attributes there are {} tensors of each parameter, found {}", lists,
              request.num_inputs() / r.n);
    return r;
  }
  // Returns the numbers of a run, whose scalars are rate, alpha, eps, weight decay and momentum.
  template <class T>
  RmspropNumbers<T> numbers(const tn_scalar* s) const {
    return {static_cast<T>(s[0].f), static_cast<T>(s[1].f), static_cast<T>(1 - s[1].f),
            static_cast<T>(s[2].f), static_cast<T>(s[3].f), static_cast<T>(s[4].f),
            T(maximize ? -1 : 1)};
  }
};

// A request whose tensors are `Lists` lists, with `Scalars` numbers for each run.
template <size_t Lists, size_t Scalars>
struct PlainStepRequest : StepRequest {
  // Reads such a request.
  static StepRequest read(const Request& request) {
    const auto r = StepRequest::from(request, Lists, Scalars);
    if (request.num_inputs() != Lists * r.n)
      invalid("there are {} tensors of each parameter, found {}", Lists,
              request.num_inputs() / r.n);
    return {r};
  }
};

// The numbers of "adagrad_step".
template <class T>
struct AdagradNumbers {
  T rate, eps, decay, sign;
};

// A request of "adagrad_step": parameters, gradients, sums of squares.
struct AdagradRequest : PlainStepRequest<3, 3> {
  // Reads a request of three tensors for each parameter.
  static AdagradRequest from(const Request& request) { return {read(request)}; }
  // Returns the numbers of a run, whose scalars are rate, eps and weight decay.
  template <class T>
  AdagradNumbers<T> numbers(const tn_scalar* s) const {
    return {static_cast<T>(s[0].f), static_cast<T>(s[1].f), static_cast<T>(s[2].f),
            T(maximize ? -1 : 1)};
  }
};

// The numbers of "nadam_step": `grow` is 1 - beta.
template <class T>
struct NadamNumbers {
  T grow1, beta2, grow2, eps, decay, shrink, grad_rate, average_rate, root_bias2, sign;
};

// A request of "nadam_step": parameters, gradients, first and second moments.
struct NadamRequest : PlainStepRequest<4, 8> {
  // Reads a request of four tensors for each parameter.
  static NadamRequest from(const Request& request) { return {read(request)}; }
  // Returns the numbers of a run, whose scalars are beta1, beta2, eps, and the last five as they
  // are.
  template <class T>
  NadamNumbers<T> numbers(const tn_scalar* s) const {
    return {static_cast<T>(1 - s[0].f), static_cast<T>(s[1].f), static_cast<T>(1 - s[1].f),
            static_cast<T>(s[2].f),     static_cast<T>(s[3].f), static_cast<T>(s[4].f),
            static_cast<T>(s[5].f),     static_cast<T>(s[6].f), static_cast<T>(s[7].f),
            T(maximize ? -1 : 1)};
  }
};

// The numbers of "radam_step": `grow` is 1 - beta, and `adaptive` says that the step is divided by
// the root of the second moment.
template <class T>
struct RadamNumbers {
  T grow1, beta2, grow2, eps, decay, shrink, rate, sign;
  bool adaptive;
};

// A request of "radam_step": parameters, gradients, first and second moments.
struct RadamRequest : PlainStepRequest<4, 7> {
  // Reads a request of four tensors for each parameter.
  static RadamRequest from(const Request& request) { return {read(request)}; }
  // Returns the numbers of a run, whose scalars are beta1, beta2, eps, weight decay, shrink, rate,
  // and whether the step is adaptive.
  template <class T>
  RadamNumbers<T> numbers(const tn_scalar* s) const {
    return {static_cast<T>(1 - s[0].f), static_cast<T>(s[1].f), static_cast<T>(1 - s[1].f),
            static_cast<T>(s[2].f),     static_cast<T>(s[3].f), static_cast<T>(s[4].f),
            static_cast<T>(s[5].f),     T(maximize ? -1 : 1),   s[6].i != 0};
  }
};

// The numbers of "lion_step": `grow` is 1 - beta.
template <class T>
struct LionNumbers {
  T lr, beta1, grow1, beta2, grow2, shrink, sign;
};

// A request of "lion_step": parameters, gradients, averages.
struct LionRequest : PlainStepRequest<3, 4> {
  // Reads a request of three tensors for each parameter.
  static LionRequest from(const Request& request) { return {read(request)}; }
  // Returns the numbers of a run, whose scalars are rate, beta1, beta2 and shrink.
  template <class T>
  LionNumbers<T> numbers(const tn_scalar* s) const {
    return {static_cast<T>(s[0].f), static_cast<T>(s[1].f),     static_cast<T>(1 - s[1].f),
            static_cast<T>(s[2].f), static_cast<T>(1 - s[2].f), static_cast<T>(s[3].f),
            T(maximize ? -1 : 1)};
  }
};

}  // namespace tenon::sdk
