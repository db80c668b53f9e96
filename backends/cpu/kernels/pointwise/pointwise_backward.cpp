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
  static Vec<T> of(Vec<T> g, Vec<T> x) {
    Vec<T> erf = math::erf<T>(x * splat(T(0.70710678118654752440)));
    Vec<T> cdf = splat(T(0.5)) * (splat(T(1)) + erf);
    Vec<T> pdf = math::exp<T>(splat(T(-0.5)) * x * x) * splat(T(0.39894228040143267794));
    return g * (cdf + x * pdf);
  }
};
struct Silu {
  template <class T>
  static Vec<T> of(Vec<T> g, Vec<T> x) {
    Vec<T> s = math::sigmoid<T>(x), one = splat(T(1));
    return g * s * (one + x * (one - s));
  }
};

// Op::of over rows of packets, either operand perhaps a single value.
template <class Op, class T>
void packet_row(const Row& row) {
  auto* y = static_cast<T*>(row.out);
  auto *g = static_cast<const T*>(row.in[0]), *x = static_cast<const T*>(row.in[1]);
  auto loop = [&](auto get_g, auto get_x) {
    for_lanes<T>(row.n, [&](int64_t i, auto part) {
      store<T>(y + i, Op::template of<T>(get_g(i, part), get_x(i, part)), part);
    });
  };
  auto from = [](const T* p) { return [p](int64_t i, auto part) { return load(p + i, part); }; };
  auto one = [](const T* p) { return [v = splat(*p)](int64_t, auto) { return v; }; };
  if (row.single == 0) return loop(from(g), from(x));
  row.single == 2 ? loop(from(g), one(x)) : loop(one(g), from(x));
}

tn_plan* plan_of(const Request& request, RowKernel f32, RowKernel f64, double ns_f32,
                 double ns_f64) {
  auto dtype = compute_dtype(request.input(0).dtype);
  if (dtype == TN_F32) return make_binary_plan(request, f32, ns_f32);
  if (dtype == TN_F64) return make_binary_plan(request, f64, ns_f64);
  refuse_dtype(request, dtype);
}
template <class Op>
tn_plan* make(const Request& request) {
  return plan_of(request, binary_row<Op, float>, binary_row<Op, double>, 0.3, 0.6);
}
template <class Op>
tn_plan* make_packets(const Request& request, double ns_f32, double ns_f64) {
  return plan_of(request, packet_row<Op, float>, packet_row<Op, double>, ns_f32, ns_f64);
}

const sdk::Kernel sigmoid({"sigmoid_backward"},
                          [](tn_device*, const Request& r) { return make<Sigmoid>(r); });
const sdk::Kernel tanh({"tanh_backward"},
                       [](tn_device*, const Request& r) { return make<Tanh>(r); });
const sdk::Kernel relu({"relu_backward"},
                       [](tn_device*, const Request& r) { return make<Relu>(r); });
const sdk::Kernel gelu({"gelu_backward"},
                       [](tn_device*, const Request& r) { return make_packets<Gelu>(r, 0.7, 14); });
const sdk::Kernel silu({"silu_backward"}, [](tn_device*, const Request& r) {
  return make_packets<Silu>(r, 0.6, 1.7);
});

}  // namespace
}  // namespace tenon::cpu
