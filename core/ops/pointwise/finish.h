// What a product, a convolution or a batch norm may do at last with its own result, while that is
// in the cache: add a tensor to it, its attribute "residual", and compute an activation of it, its
// attribute "activation" (docs/operators.md). Passes over a recorded program set them; private, and
// below autograd: no gradient rule knows of them.
#pragma once

#include <optional>

#include <tenon/core/dispatch/op.h>

namespace tenon {

inline constexpr const char* kActivation = "activation";
inline constexpr const char* kResidual = "residual";

// Returns whether a call of the operator, one of the library's own that takes one tensor, can be
// the activation of another operator: its name is then the attribute's value, and its numbers are
// those of the other's call.
bool is_activation(const Op& op);
// Returns whether calls of the operator may have an activation and a residual.
bool takes_activation(const Op& op);
// Returns the number of the input that is added to the result, which comes after all others.
// Nothing for operators that add none.
std::optional<size_t> residual_input(const Op& op);

// OpSpec::count_scalars of operators that take an activation and no numbers of their own, or one.
size_t count_activation_scalars(const Attrs& attrs);
size_t count_one_and_activation_scalars(const Attrs& attrs);
// For their shape rules. Throws a ValueError that names the operator, and the activations that
// there are, if the attribute is there and names none of them.
void require_activation(const Infer& infer);
// For the same rules when output 0 is known. Throws a ShapeError unless the residual, where the
// attribute is there, has the shape and the dtype of that output.
void require_residual(const Infer& infer);

}  // namespace tenon
