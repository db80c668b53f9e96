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
const sdk::Kernel real({"atan2", "hypot", "copysign", "logaddexp", "xlogy"},
                       [](tn_device*, const Request& request) {
                         return make_binary_plan(request, kReal);
                       });

}  // namespace
}  // namespace tenon::cpu
