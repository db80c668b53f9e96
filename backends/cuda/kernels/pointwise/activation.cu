// The activations whose gradients are in activation_backward.cu.
#include <cmath>

#include "kernels/pointwise/functions.h"

namespace tenon::cuda {
namespace {

struct Tanh {
  template <class T>
  __device__ T operator()(T x) const {
    return std::tanh(x);
  }
};
struct Sigmoid {
  template <class T>
  __device__ T operator()(T x) const {
    return T(1) / (T(1) + std::exp(-x));
  }
};
struct Silu {
  template <class T>
  __device__ T operator()(T x) const {
    return x / (T(1) + std::exp(-x));
  }
};
struct Gelu {
  template <class T>
  __device__ T operator()(T x) const {
    return T(0.5) * x * (T(1) + std::erf(x * T(0.70710678118654752440)));
  }
};

constexpr NamedUnary kActivations[] = {
    number_function<formulas::Relu>("relu"),
    float_function<Tanh>("tanh"),
    float_function<Sigmoid>("sigmoid"),
    float_function<Silu>("silu"),
    float_function<Gelu>("gelu"),
};
const sdk::Kernel activations({"relu", "tanh", "sigmoid", "silu", "gelu"},
                              [](tn_device*, const Request& request) {
                                return make_unary_plan(request, kActivations);
                              });

}  // namespace
}  // namespace tenon::cuda
