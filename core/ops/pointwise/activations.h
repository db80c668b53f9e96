// Activations that a product or a convolution may compute of its own result, while that is in the
// cache: its attribute "activation" (docs/operators.md). A pass over a recorded program sets it;
// private, and below autograd: no gradient rule knows of it.
#pragma once

#include <tenon/core/dispatch/op.h>

namespace tenon {

inline constexpr const char* kActivation = "activation";

// Returns whether a call of the operator, one of the library's own that takes one tensor, can be
// the activation of another operator: its name is then the attribute's value, and its numbers are
// those of the other's call.
bool is_activation(const Op& op);
// Returns whether calls of the operator may have an activation.
bool takes_activation(const Op& op);

// OpSpec::count_scalars of operators that take an activation and no numbers of their own.
size_t count_activation_scalars(const Attrs& attrs);
// For their shape rules. Throws a ValueError that names the operator, and the activations that
// there are, if the attribute is there and names none of them.
void require_activation(const Infer& infer);

}  // namespace tenon
