// Pointwise operators of one tensor.
#include <tenon/plugins/sdk/special.h>

#include "kernels/pointwise/elements.h"
#include "kernels/pointwise/functions.h"

namespace tenon::cuda {
namespace {

constexpr NamedUnary kUnary[] = {
    number_function<formulas::Neg>("neg"),
    number_function<formulas::Abs>("abs"),
    number_function<formulas::Sign>("sign"),
    number_function<formulas::Square>("square"),
    float_function<elements::Exp>("exp"),
    float_function<elements::Log>("log"),
    float_function<formulas::Reciprocal>("reciprocal"),
    float_function<formulas::Sqrt>("sqrt"),
    float_function<elements::Sin>("sin"),
    float_function<elements::Cos>("cos"),
    float_function<formulas::Rsqrt>("rsqrt"),
    float_function<elements::Erf>("erf"),
    float_function<formulas::Floor>("floor"),
    float_function<formulas::Ceil>("ceil"),
    float_function<formulas::Round>("round"),
    wide_function<formulas::Trunc>("trunc"),
};

const sdk::Kernel unary(kUnary, make_unary<kUnary>);

}  // namespace
}  // namespace tenon::cuda
