// How a pointwise operator on two operands is called, for arithmetic and comparisons.
#pragma once

#include <tenon/core/ops/rules.h>

namespace tenon {

// Shape rules of operands of one dtype: any; no bool; floating.
void infer_arithmetic(Infer& infer);
void infer_number(Infer& infer);
void infer_float(Infer& infer);
// Shape of inputs 0 and 1 together; of input 0 alone where the second operand is a number.
Shape broadcast_inputs(Infer& infer);

Tensor run_binary(const Op& op, const Tensor& a, const Tensor& b);
// `reverse`: the number is the first operand.
Tensor run_binary(const Op& op, const Tensor& a, Number b, bool reverse = false);

// For operators that compute in floating dtypes only: the number is a double, and `run` converts
// the tensor.
Tensor float_binary(const Op& op, const Tensor& a, Number b, bool reverse = false);

// For operators that compare values: a number is refused that the dtype of an integer tensor does
// not hold, because its low bits would be compared.
Tensor run_ordering(const Op& op, const Tensor& a, Number b);

// ---- pieces of gradient rules ----

// Which form a call had: if the second operand is a number, input 1 is absent.
inline bool has_number(const GradContext& c) { return !c.scalars.empty(); }
inline bool reversed(const GradContext& c) { return has_number(c) && c.attrs.get_bool("reverse"); }
// Gradients exist for floating types only, so the number is a double.
inline double number(const GradContext& c) { return c.scalars[0].value.f; }

// The gradient of the first and of the second operand, without what broadcasting added.
inline Tensor first(const GradContext& c, const Tensor& gradient) {
  return sum_to(gradient, c.input_shape(0));
}
inline Tensor second(const GradContext& c, const Tensor& gradient) {
  return sum_to(gradient, c.input_shape(1));
}

}  // namespace tenon
