// Functions of two tensors of floating types.
#include <tenon/plugins/sdk/binary_formulas.h>

#include "kernels/pointwise/functions.h"

namespace tenon::cpu {
namespace {

constexpr NamedRows kReal[] = {
    float_of_two<formulas::Atan2>("atan2", 12, 20),
    float_of_two<formulas::Hypot>("hypot", 4, 8),
    float_of_two<formulas::Copysign>("copysign", 0.3, 0.6),
    float_of_two<formulas::Logaddexp>("logaddexp", 15, 25),
    float_of_two<formulas::Xlogy>("xlogy", 5, 8),
};
const sdk::Kernel real(kReal, make_binary<kReal>);

}  // namespace
}  // namespace tenon::cpu
