// Pointwise operators of one tensor.
#include <cmath>

#include "kernels/pointwise/pointwise.h"

namespace tenon::cuda {
namespace {

// What the device has functions of its own for.
#define TN_UNARY(Name, formula)          \
  struct Name {                          \
    template <class T>                   \
    __device__ T operator()(T x) const { \
      return formula;                    \
    }                                    \
  }
TN_UNARY(Exp, std::exp(x));
TN_UNARY(Log, std::log(x));
TN_UNARY(Sin, std::sin(x));
TN_UNARY(Cos, std::cos(x));
TN_UNARY(Erf, std::erf(x));
TN_UNARY(Tanh, std::tanh(x));
TN_UNARY(Sigmoid, T(1) / (T(1) + std::exp(-x)));
TN_UNARY(Silu, x / (T(1) + std::exp(-x)));
TN_UNARY(Gelu, T(0.5) * x * (T(1) + std::erf(x * T(0.70710678118654752440))));
#undef TN_UNARY

struct UnaryEntry {
  const char* op;
  ByDtype<UnaryStart> starts;
};
template <class Op>
constexpr UnaryEntry floats(const char* op) {
  return {op, float_starts([]<class T>(Type<T>) { return start_unary<Op, T, T>; })};
}
template <class Op>
constexpr UnaryEntry numbers(const char* op) {
  return {op, number_starts([]<class T>(Type<T>) { return start_unary<Op, T, T>; })};
}

constexpr UnaryEntry kUnaryEntries[] = {
    numbers<formulas::Neg>("neg"),
    numbers<formulas::Abs>("abs"),
    numbers<formulas::Sign>("sign"),
    numbers<formulas::Square>("square"),
    numbers<formulas::Relu>("relu"),
    floats<Exp>("exp"),
    floats<Log>("log"),
    floats<formulas::Reciprocal>("reciprocal"),
    floats<formulas::Sqrt>("sqrt"),
    floats<Sin>("sin"),
    floats<Cos>("cos"),
    floats<formulas::Rsqrt>("rsqrt"),
    floats<Erf>("erf"),
    floats<Tanh>("tanh"),
    floats<Sigmoid>("sigmoid"),
    floats<Silu>("silu"),
    floats<Gelu>("gelu"),
    floats<formulas::Floor>("floor"),
    floats<formulas::Ceil>("ceil"),
    floats<formulas::Round>("round"),
};

tn_plan* make_unary(tn_device*, const Request& request) {
  auto& starts = sdk::entry_of(kUnaryEntries, request.op()).starts;
  return make_unary_plan(request, starts.pick(request.input(0).dtype));
}

const sdk::Kernel unary({"neg",     "abs",  "sign",  "square", "relu", "reciprocal", "exp",
                         "log",     "sqrt", "rsqrt", "sin",    "cos",  "erf",        "tanh",
                         "sigmoid", "silu", "gelu",  "floor",  "ceil", "round"},
                        make_unary);

}  // namespace
}  // namespace tenon::cuda
