// The activations whose gradients are in activation_backward.cu.
#include "kernels/pointwise/elements.h"
#include "kernels/pointwise/functions.h"

namespace tenon::cuda {
namespace {

constexpr NamedUnary kActivations[] = {
    number_function<formulas::Relu>("relu"),      float_function<elements::Tanh>("tanh"),
    float_function<elements::Sigmoid>("sigmoid"), float_function<elements::Silu>("silu"),
    float_function<elements::Gelu>("gelu"),
};
const sdk::Kernel activations(kActivations, make_unary<kActivations>);

}  // namespace
}  // namespace tenon::cuda
