// What DetectAnomaly does in the backward pass.
#pragma once

#include <span>

#include <tenon/core/autograd/node.h>

namespace tenon {

// Throws the AutogradError of DetectAnomaly if a gradient that `node` computed has a NaN. The
// caller has entered the module of the node.
void require_no_nan(const Node& node, std::span<const Tensor> given,
                    std::span<const Tensor> computed);

}  // namespace tenon
