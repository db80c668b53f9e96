// How a pointwise operator on two operands is called, for arithmetic and comparisons.
#pragma once

#include <tenon/core/ops/rules.h>

namespace tenon {

// Shape of inputs 0 and 1 together; of input 0 alone where the second operand is a number.
Shape broadcast_inputs(Infer& infer);

Tensor run_binary(const Op& op, const Tensor& a, const Tensor& b);
// `reverse`: the number is the first operand.
Tensor run_binary(const Op& op, const Tensor& a, Number b, bool reverse = false);

// For operators that compare values: a number is refused that the dtype of an integer tensor does
// not hold, because its low bits would be compared.
Tensor run_ordering(const Op& op, const Tensor& a, Number b);

}  // namespace tenon
