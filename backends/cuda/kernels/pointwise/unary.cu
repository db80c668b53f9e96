// Pointwise operators of one tensor.
#include <cmath>

#include <tenon/plugins/sdk/special.h>

#include "kernels/pointwise/functions.h"

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
#undef TN_UNARY

constexpr NamedUnary kUnary[] = {
    number_function<formulas::Neg>("neg"),
    number_function<formulas::Abs>("abs"),
    number_function<formulas::Sign>("sign"),
    number_function<formulas::Square>("square"),
    float_function<Exp>("exp"),
    float_function<Log>("log"),
    float_function<formulas::Reciprocal>("reciprocal"),
    float_function<formulas::Sqrt>("sqrt"),
    float_function<Sin>("sin"),
    float_function<Cos>("cos"),
    float_function<formulas::Rsqrt>("rsqrt"),
    float_function<Erf>("erf"),
    float_function<formulas::Floor>("floor"),
    float_function<formulas::Ceil>("ceil"),
    float_function<formulas::Round>("round"),
    wide_function<formulas::Trunc>("trunc"),
};

const sdk::Kernel unary({"neg", "abs", "sign", "square", "reciprocal", "exp", "log", "sqrt",
                         "rsqrt", "sin", "cos", "erf", "floor", "ceil", "round", "trunc"},
                        [](tn_device*, const Request& request) {
                          return make_unary_plan(request, kUnary);
                        });

}  // namespace
}  // namespace tenon::cuda
