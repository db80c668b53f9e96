// Pointwise operators of one tensor.
#include <tenon/plugins/sdk/special.h>

#include "kernels/pointwise/functions.h"
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
#undef TN_PACKETS

constexpr NamedRows kUnary[] = {
    number_function<formulas::Neg>("neg"),
    number_function<formulas::Abs>("abs"),
    number_function<formulas::Sign>("sign"),
    number_function<formulas::Square>("square"),
    float_function<formulas::Reciprocal>("reciprocal", 0.2, 0.5),
    packet_function<Exp>("exp", 0.3, 0.9),
    packet_function<Log>("log", 0.25, 1.8),
    float_function<formulas::Sqrt>("sqrt", 0.3, 0.8),
    float_function<formulas::Rsqrt>("rsqrt", 0.5, 1.3),
    packet_function<Sin>("sin", 0.5, 12),
    packet_function<Cos>("cos", 0.5, 12),
    packet_function<Erf>("erf", 0.3, 12),
    float_function<formulas::Floor>("floor", 0.2, 0.4),
    float_function<formulas::Ceil>("ceil", 0.2, 0.4),
    float_function<formulas::Round>("round", 0.2, 0.4),
    float_function<formulas::Trunc>("trunc", 0.2, 0.4),
};

const sdk::Kernel unary(kUnary, make_unary<kUnary>);

}  // namespace
}  // namespace tenon::cpu
