// Elementary functions of one tensor beside those of unary.cu.
#include <tenon/plugins/sdk/special.h>

#include "kernels/pointwise/functions.h"

namespace tenon::cuda {
namespace {

constexpr NamedUnary kElementary[] = {
    wide_function<formulas::Expm1>("expm1"), wide_function<formulas::Log1p>("log1p"),
    wide_function<formulas::Exp2>("exp2"),   wide_function<formulas::Log2>("log2"),
    wide_function<formulas::Log10>("log10"), wide_function<formulas::Tan>("tan"),
    wide_function<formulas::Asin>("asin"),   wide_function<formulas::Acos>("acos"),
    wide_function<formulas::Atan>("atan"),   wide_function<formulas::Sinh>("sinh"),
    wide_function<formulas::Cosh>("cosh"),   wide_function<formulas::Asinh>("asinh"),
    wide_function<formulas::Acosh>("acosh"), wide_function<formulas::Atanh>("atanh"),
};
const sdk::Kernel elementary(kElementary, make_unary<kElementary>);

}  // namespace
}  // namespace tenon::cuda
