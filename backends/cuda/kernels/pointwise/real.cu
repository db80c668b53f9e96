// Functions of two tensors of floating types.
#include <tenon/plugins/sdk/binary_formulas.h>

#include "kernels/pointwise/functions.h"

namespace tenon::cuda {
namespace {

constexpr NamedBinary kReal[] = {
    wide_of_two<formulas::Atan2>("atan2"),       wide_of_two<formulas::Hypot>("hypot"),
    wide_of_two<formulas::Copysign>("copysign"), wide_of_two<formulas::Logaddexp>("logaddexp"),
    wide_of_two<formulas::Xlogy>("xlogy"),
};
const sdk::Kernel real(kReal, make_binary<kReal>);

}  // namespace
}  // namespace tenon::cuda
