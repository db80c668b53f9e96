// Smooth activations and their gradients, each in one pass: x -> y, and (g, x) -> gx.
#include <tenon/plugins/sdk/activations.h>

#include "kernels/pointwise/finish.h"
#include "kernels/pointwise/pointwise.h"
#include "simd/bf16.h"
#include "simd/near_zero.h"

namespace tenon::cpu {
namespace {

// What the formulas are computed with: a packet.
template <class T>
struct Packets {
  using Value = Vec<T>;
  static Value of(T x) { return splat(x); }
  static Value exp(Value x) { return math::exp<T>(x); }
  static Value expm1(Value x) { return math::expm1<T>(x); }
  static Value log1p(Value x) { return math::log1p<T>(x); }
  static Value abs(Value x) { return Eigen::internal::pabs(x); }
};

// The formula, with its numbers, is the operand after the tensors.
template <class F, class T>
void value_row(const Row& row) {
  auto* y = static_cast<T*>(row.out);
  auto* x = static_cast<const T*>(row.in[0]);
  const F f = *static_cast<const F*>(row.in[1]);
  for_lanes<T>(row.n, [&](int64_t i, auto part) {
    store<T>(y + i, f.template value<Packets<T>>(load(x + i, part)), part);
  });
}
template <class F, class T>
void slope_row(const Row& row) {
  auto* y = static_cast<T*>(row.out);
  auto *g = static_cast<const T*>(row.in[0]), *x = static_cast<const T*>(row.in[1]);
  const F f = *static_cast<const F*>(row.in[2]);
  auto loop = [&](auto get_g, auto get_x) {
    for_lanes<T>(row.n, [&](int64_t i, auto part) {
      store<T>(y + i, get_g(i, part) * f.template slope<Packets<T>>(get_x(i, part)), part);
    });
  };
  auto from = [](const T* p) { return [p](int64_t i, auto part) { return load(p + i, part); }; };
  auto one = [](const T* p) { return [v = splat(*p)](int64_t, auto) { return v; }; };
  switch (row.single & 3) {
    case 0:
      return loop(from(g), from(x));
    case 1:
      return loop(one(g), from(x));
    default:
      return loop(from(g), one(x));
  }
}

// The same of bf16 that is read and written without a buffer between.
template <class F>
void bf16_value_row(const Row& row) {
  const F f = *static_cast<const F*>(row.in[1]);
  for_bf16(
      row.n, static_cast<uint16_t*>(row.out),
      [&](Vec<float> x) { return f.template value<Packets<float>>(x); },
      static_cast<const uint16_t*>(row.in[0]));
}
template <class F>
void bf16_slope_row(const Row& row) {
  auto* y = static_cast<uint16_t*>(row.out);
  auto *g = static_cast<const uint16_t*>(row.in[0]), *x = static_cast<const uint16_t*>(row.in[1]);
  const F f = *static_cast<const F*>(row.in[2]);
  const auto slope = [&](Vec<float> v) { return f.template slope<Packets<float>>(v); };
  switch (row.single & 3) {
    case 0:
      return for_bf16(
          row.n, y, [&](Vec<float> a, Vec<float> b) { return Vec<float>(a * slope(b)); }, g, x);
    case 1:
      return for_bf16(
          row.n, y,
          [one = splat(widened(*g)), &slope](Vec<float> v) { return Vec<float>(one * slope(v)); },
          x);
    default:
      return for_bf16(
          row.n, y, [one = slope(splat(widened(*x)))](Vec<float> v) { return Vec<float>(v * one); },
          g);
  }
}

using Start = void (*)(const Pointwise&, const tn_run&);
// T is float, double, or the bits of a bf16.
template <template <class> class F, class T>
void start_value(const Pointwise& loop, const tn_run& run) {
  using Formula = F<std::conditional_t<std::is_integral_v<T>, float, T>>;
  const auto f = Formula::from(run.scalars);
  const void* in[] = {run.inputs[0], &f};
  if constexpr (std::is_integral_v<T>)
    loop.run(bf16_value_row<Formula>, run.outputs[0], in);
  else
    loop.run(value_row<Formula, T>, run.outputs[0], in);
}
template <template <class> class F, class T>
void start_slope(const Pointwise& loop, const tn_run& run) {
  using Formula = F<std::conditional_t<std::is_integral_v<T>, float, T>>;
  const auto f = Formula::from(run.scalars);
  const void* in[] = {run.inputs[0], run.inputs[1], &f};
  if constexpr (std::is_integral_v<T>)
    loop.run(bf16_slope_row<Formula>, run.outputs[0], in);
  else
    loop.run(slope_row<Formula, T>, run.outputs[0], in);
}

template <template <class> class F, class T>
void smooth_rows(RowKernel kernel, void* y, int64_t n, const tn_scalar* numbers) {
  const auto f = F<T>::from(numbers);
  kernel({n, y, {y, &f}, 0});
}

struct Entry {
  const char *op, *backward;
  size_t scalars;
  double ns, ns_wide;
  sdk::ByDtype<Start> values, slopes;
  sdk::ByDtype<Finish::Rows> finishes;
  sdk::ByDtype<RowKernel> rows;

  double ns_of(tn_dtype dtype) const { return sdk::dtype_size(dtype) == 8 ? ns_wide : ns; }
};
template <template <class> class F>
constexpr Entry entry(const char* op, const char* backward, size_t scalars, double ns,
                      double ns_wide) {
  return {op,
          backward,
          scalars,
          ns,
          ns_wide,
          sdk::for_floats<float, uint16_t>([]<class T>(Type<T>) { return start_value<F, T>; }),
          sdk::for_floats<float, uint16_t>([]<class T>(Type<T>) { return start_slope<F, T>; }),
          sdk::for_floats<float, float>([]<class T>(Type<T>) { return smooth_rows<F, T>; }),
          sdk::for_floats<float, float>([]<class T>(Type<T>) { return value_row<F<T>, T>; })};
}
constexpr Entry kSmooth[] = {
    entry<formulas::Elu>("elu", "elu_backward", 3, 1.1, 4),
    entry<formulas::LeakyRelu>("leaky_relu", "leaky_relu_backward", 1, 0.2, 0.4),
    entry<formulas::Softplus>("softplus", "softplus_backward", 2, 1.1, 4),
    entry<formulas::LogSigmoid>("logsigmoid", "logsigmoid_backward", 0, 1, 4),
    entry<formulas::GeluTanh>("gelu_tanh", "gelu_tanh_backward", 0, 0.4, 1.5),
    entry<formulas::Mish>("mish", "mish_backward", 0, 0.5, 1.5),
    entry<formulas::HardSigmoid>("hardsigmoid", "hardsigmoid_backward", 0, 0.3, 0.5),
    entry<formulas::HardSwish>("hardswish", "hardswish_backward", 0, 0.3, 0.5),
};

tn_plan* make_activation(const Request& request, bool backward) {
  const Entry* found = nullptr;
  for (auto& e : kSmooth)
    if (request.op() == (backward ? e.backward : e.op)) found = &e;
  const auto& x = request.input(backward ? 1 : 0);
  const Start start = (backward ? found->slopes : found->values).pick(x.dtype);
  sdk::require_scalars(request, found->scalars);
  if (backward && request.input(0).dtype != x.dtype) sdk::invalid("both tensors have one dtype");
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  const double ns = found->ns_of(x.dtype);
  const bool as_bits = x.dtype == TN_BF16;
  if (request.output(0).dtype != x.dtype) sdk::invalid("the result has the dtype of x");
  Pointwise loop = backward ? Pointwise(request, {&request.input(0), &x, nullptr}, 3, ns, as_bits)
                            : Pointwise(request, {&x, nullptr}, 0, ns, as_bits);
  return sdk::make_plan([loop, start](const tn_run& run) { start(loop, run); },
                        {0, loop.cost_ns()});
}

const sdk::Kernel values({"elu", "leaky_relu", "softplus", "logsigmoid", "gelu_tanh", "mish",
                          "hardsigmoid", "hardswish"},
                         [](tn_device*, const Request& r) { return make_activation(r, false); });
const sdk::Kernel slopes({"elu_backward", "leaky_relu_backward", "softplus_backward",
                          "logsigmoid_backward", "gelu_tanh_backward", "mish_backward",
                          "hardsigmoid_backward", "hardswish_backward"},
                         [](tn_device*, const Request& r) { return make_activation(r, true); });

}  // namespace

Finish finish_by_smooth(std::string_view op, tn_dtype dtype) {
  for (auto& entry : kSmooth)
    if (op == entry.op)
      return {entry.finishes.pick(dtype), entry.rows.pick(dtype), entry.ns_of(dtype)};
  return {};
}

}  // namespace tenon::cpu
