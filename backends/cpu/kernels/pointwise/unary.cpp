// Pointwise operators of one tensor.
#include "kernels/pointwise/pointwise.h"
#include "simd/math.h"

namespace tenon::cpu {
namespace {

// Functions of whole packets.
#define TN_PACKETS(Name, formula) \
  struct Name {                   \
    template <class T>            \
    static Vec<T> of(Vec<T> x) {  \
      return formula;             \
    }                             \
  }
TN_PACKETS(Exp, math::exp<T>(x));
TN_PACKETS(Log, math::log<T>(x));
TN_PACKETS(Sin, math::sin<T>(x));
TN_PACKETS(Cos, math::cos<T>(x));
TN_PACKETS(Erf, math::erf<T>(x));
TN_PACKETS(Tanh, math::tanh<T>(x));
TN_PACKETS(Sigmoid, math::sigmoid<T>(x));
TN_PACKETS(Silu, x / (splat(T(1)) + math::exp<T>(-x)));
TN_PACKETS(Gelu,
           x* splat(T(0.5)) * (splat(T(1)) + math::erf<T>(x * splat(T(0.70710678118654752440)))));
#undef TN_PACKETS

template <class Op, class T>
void packet_row(const Row& row) {
  auto* y = static_cast<T*>(row.out);
  auto* x = static_cast<const T*>(row.in[0]);
  for_lanes<T>(row.n, [&](int64_t i, auto part) {
    store<T>(y + i, Op::template of<T>(load(x + i, part)), part);
  });
}

template <class Op>
constexpr NamedRows floats(const char* op, double ns, double ns_f64) {
  return {op, ns, ns_f64, float_rows([]<class T>(Type<T>) { return unary_row<Op, T>; })};
}
template <class Op>
constexpr NamedRows packets(const char* op, double ns, double ns_f64) {
  return {op, ns, ns_f64, float_rows([]<class T>(Type<T>) { return packet_row<Op, T>; })};
}
template <class Op>
constexpr NamedRows numbers(const char* op) {
  return {op, 0.2, 0.4, number_rows([]<class T>(Type<T>) { return unary_row<Op, T>; })};
}

constexpr NamedRows kUnary[] = {
    numbers<formulas::Neg>("neg"),
    numbers<formulas::Abs>("abs"),
    numbers<formulas::Sign>("sign"),
    numbers<formulas::Square>("square"),
    numbers<formulas::Relu>("relu"),
    floats<formulas::Reciprocal>("reciprocal", 0.2, 0.5),
    packets<Exp>("exp", 0.3, 0.9),
    packets<Log>("log", 0.25, 1.8),
    floats<formulas::Sqrt>("sqrt", 0.3, 0.8),
    floats<formulas::Rsqrt>("rsqrt", 0.5, 1.3),
    packets<Sin>("sin", 0.5, 12),
    packets<Cos>("cos", 0.5, 12),
    packets<Erf>("erf", 0.3, 12),
    packets<Tanh>("tanh", 0.3, 1.6),
    packets<Sigmoid>("sigmoid", 0.4, 1.3),
    packets<Silu>("silu", 0.4, 1.3),
    packets<Gelu>("gelu", 0.4, 12),
    floats<formulas::Floor>("floor", 0.2, 0.4),
    floats<formulas::Ceil>("ceil", 0.2, 0.4),
    floats<formulas::Round>("round", 0.2, 0.4),
};

const sdk::Kernel unary({"neg",     "abs",  "sign",  "square", "relu", "reciprocal", "exp",
                         "log",     "sqrt", "rsqrt", "sin",    "cos",  "erf",        "tanh",
                         "sigmoid", "silu", "gelu",  "floor",  "ceil", "round"},
                        [](tn_device*, const Request& request) {
                          return make_unary_plan(request, kUnary);
                        });

template <class T>
void clamp_row(const Row& row) {
  auto* y = static_cast<T*>(row.out);
  auto* x = static_cast<const T*>(row.in[0]);
  const auto clamp = *static_cast<const formulas::Clamp<T>*>(row.in[1]);
  TN_INDEPENDENT
  for (int64_t i = 0; i < row.n; ++i) y[i] = clamp(x[i]);
}

tn_plan* make_clamp(tn_device*, const Request& request) {
  auto& x = request.input(0);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  Pointwise loop(request, {&x, nullptr}, 0, 0.2);
  return with_number(computed_as(x.dtype), [&loop]<class T>(T) {
    auto run = [loop](const tn_run& run) {
      const auto clamp = formulas::Clamp<T>::from(run.scalars);
      const void* in[] = {run.inputs[0], &clamp};
      loop.run(clamp_row<T>, run.outputs[0], in);
    };
    return sdk::make_plan(run, {0, loop.cost_ns()});
  });
}

const sdk::Kernel clamp({"clamp"}, make_clamp);

}  // namespace
}  // namespace tenon::cpu
