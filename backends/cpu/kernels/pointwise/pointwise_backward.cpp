// Gradients of the activations, each in one pass: (g, y) -> gx with the forward result y, or (g, x)
// -> gx with its input x.
#include <cmath>
#include <cstring>

#include "kernels/pointwise/pointwise.h"
#include "simd/math.h"

namespace tenon::cpu {
namespace {

struct Sigmoid {
  template <class T>
  static T of(T g, T y) {
    return g * (T(1) - y) * y;
  }
};
struct Tanh {
  template <class T>
  static T of(T g, T y) {
    return g * (T(1) - y * y);
  }
};
struct Relu {
  template <class T>
  static T of(T g, T y) {
    return y <= T(0) ? T(0) : g;
  }
};
// d/dx x Phi(x) = Phi(x) + x phi(x)
struct Gelu {
  template <class T>
  static T of(T g, T x) {
    T cdf = T(0.5) * (T(1) + math::erf(x * T(0.70710678118654752440)));
    T pdf = math::exp(T(-0.5) * x * x) * T(0.39894228040143267794);
    return g * (cdf + x * pdf);
  }
};
struct Silu {
  template <class T>
  static T of(T g, T x) {
    T s = math::sigmoid(x);
    return g * s * (T(1) + x * (T(1) - s));
  }
};

template <class Op>
tn_plan* make(const Request& request, double ns_f32, double ns_f64) {
  auto dtype = compute_dtype(request.input(0).dtype);
  if (dtype == TN_F32) return make_binary_plan(request, binary_row<Op, float>, ns_f32);
  if (dtype == TN_F64) return make_binary_plan(request, binary_row<Op, double>, ns_f64);
  refuse_dtype(request, dtype);
}

const sdk::Kernel sigmoid({"sigmoid_backward"},
                          [](tn_device*, const Request& r) { return make<Sigmoid>(r, 0.3, 0.6); });
const sdk::Kernel tanh({"tanh_backward"},
                       [](tn_device*, const Request& r) { return make<Tanh>(r, 0.3, 0.6); });
const sdk::Kernel relu({"relu_backward"},
                       [](tn_device*, const Request& r) { return make<Relu>(r, 0.3, 0.6); });
const sdk::Kernel gelu({"gelu_backward"},
                       [](tn_device*, const Request& r) { return make<Gelu>(r, 0.8, 14); });
const sdk::Kernel silu({"silu_backward"},
                       [](tn_device*, const Request& r) { return make<Silu>(r, 0.6, 1.5); });

}  // namespace
}  // namespace tenon::cpu
