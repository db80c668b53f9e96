// Gradients of the activations of activation.cpp, each in one pass: (g, y) -> gx with the forward
// result y, or (g, x) -> gx with its input x.
#include <cmath>
#include <cstring>

#include "kernels/pointwise/pointwise.h"
#include "simd/bf16.h"
#include "simd/math.h"

namespace tenon::cpu {
namespace {

// d/dx x Phi(x) = Phi(x) + x phi(x)
struct GeluBackward {
  template <class T>
  static Vec<T> of(Vec<T> g, Vec<T> x) {
    Vec<T> erf = math::erf<T>(x * splat(T(0.70710678118654752440)));
    Vec<T> cdf = splat(T(0.5)) * (splat(T(1)) + erf);
    Vec<T> pdf = math::exp<T>(splat(T(-0.5)) * x * x) * splat(T(0.39894228040143267794));
    return g * (cdf + x * pdf);
  }
};
struct SiluBackward {
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

template <class Op>
void bf16_packet_row(const Row& row) {
  auto* y = static_cast<uint16_t*>(row.out);
  auto *g = static_cast<const uint16_t*>(row.in[0]), *x = static_cast<const uint16_t*>(row.in[1]);
  const auto of = [](Vec<float> a, Vec<float> b) { return Op::template of<float>(a, b); };
  if (row.single == 0) return for_bf16(row.n, y, of, g, x);
  const Vec<float> one = splat(widened(row.single == 2 ? *x : *g));
  if (row.single == 2)
    return for_bf16(
        row.n, y, [&](Vec<float> v) { return of(v, one); }, g);
  for_bf16(
      row.n, y, [&](Vec<float> v) { return of(one, v); }, x);
}

template <class Op>
constexpr NamedRows formula(const char* op) {
  return {op, 0.3, 0.6, float_rows([]<class T>(Type<T>) { return binary_row<Op, T>; }),
          bf16_row<Op>};
}
template <class Op>
constexpr NamedRows packets(const char* op, double ns, double ns_f64) {
  return {op, ns, ns_f64, float_rows([]<class T>(Type<T>) { return packet_row<Op, T>; }),
          bf16_packet_row<Op>};
}
constexpr NamedRows kGradients[] = {formula<formulas::SigmoidBackward>("sigmoid_backward"),
                                    formula<formulas::TanhBackward>("tanh_backward"),
                                    formula<formulas::ReluBackward>("relu_backward"),
                                    packets<GeluBackward>("gelu_backward", 0.7, 14),
                                    packets<SiluBackward>("silu_backward", 0.6, 1.7)};

const sdk::Kernel gradients(kGradients, make_binary<kGradients>);

}  // namespace
}  // namespace tenon::cpu
