// The inverse of matrices, for negative powers.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon {

// Returns the inverses of square matrices (…, m, m) of a floating dtype. Those of a singular matrix
// are not finite.
Tensor inverse(const Tensor& x);

}  // namespace tenon
