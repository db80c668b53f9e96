// Elementary functions of one tensor beside those of unary.cpp.
#include <tenon/plugins/sdk/special.h>

#include "kernels/pointwise/functions.h"
#include "simd/near_zero.h"

namespace tenon::cpu {
namespace {

struct Expm1Packets {
  template <class T>
  static Vec<T> of(Vec<T> x) {
    return math::expm1<T>(x);
  }
};
struct Log1pPackets {
  template <class T>
  static Vec<T> of(Vec<T> x) {
    return math::log1p<T>(x);
  }
};

constexpr NamedRows kElementary[] = {
    packet_function<Expm1Packets>("expm1", 0.9, 3),
    packet_function<Log1pPackets>("log1p", 0.6, 2.5),
    float_function<formulas::Exp2>("exp2", 3, 6),
    float_function<formulas::Log2>("log2", 3, 6),
    float_function<formulas::Log10>("log10", 5, 9),
    float_function<formulas::Tan>("tan", 9, 16),
    float_function<formulas::Asin>("asin", 6, 9),
    float_function<formulas::Acos>("acos", 6, 9),
    float_function<formulas::Atan>("atan", 6, 9),
    float_function<formulas::Sinh>("sinh", 9, 14),
    float_function<formulas::Cosh>("cosh", 7, 12),
    float_function<formulas::Asinh>("asinh", 9, 14),
    float_function<formulas::Acosh>("acosh", 9, 14),
    float_function<formulas::Atanh>("atanh", 9, 14),
};
const sdk::Kernel elementary(kElementary, make_unary<kElementary>);

}  // namespace
}  // namespace tenon::cpu
