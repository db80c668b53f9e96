// The activations whose gradients are in activation_backward.cpp.
#include "kernels/pointwise/finish.h"
#include "kernels/pointwise/functions.h"
#include "simd/math.h"

namespace tenon::cpu {
namespace {

struct Tanh {
  template <class T>
  static Vec<T> of(Vec<T> x) {
    return math::tanh<T>(x);
  }
};
struct Sigmoid {
  template <class T>
  static Vec<T> of(Vec<T> x) {
    return math::sigmoid<T>(x);
  }
};
struct Silu {
  template <class T>
  static Vec<T> of(Vec<T> x) {
    return x / (splat(T(1)) + math::exp<T>(-x));
  }
};
struct Gelu {
  template <class T>
  static Vec<T> of(Vec<T> x) {
    return x * splat(T(0.5)) * (splat(T(1)) + math::erf<T>(x * splat(T(0.70710678118654752440))));
  }
};

constexpr NamedRows kActivations[] = {
    number_function<formulas::Relu>("relu"),       packet_function<Tanh>("tanh", 0.3, 1.6),
    packet_function<Sigmoid>("sigmoid", 0.4, 1.3), packet_function<Silu>("silu", 0.4, 1.3),
    packet_function<Gelu>("gelu", 0.4, 12),
};
const sdk::Kernel activations(kActivations, make_unary<kActivations>);

void activation_rows(RowKernel kernel, void* y, int64_t n, const tn_scalar*) {
  kernel({n, y, {y}, 0});
}

}  // namespace

Finish finish_by_activation(std::string_view op, tn_dtype dtype) {
  for (auto& named : kActivations)
    if (op == named.op) return {activation_rows, named.rows.pick(dtype), named.ns_of(dtype)};
  return {};
}

}  // namespace tenon::cpu
