// Dropout (Srivastava et al., JMLR 15, 2014), inverted: what is kept is scaled by 1 / (1 - p).
#pragma once

#include <tenon/core/tensor.h>

namespace tenon {

// Zeroes each element with probability p, independently. x itself where not training or p is 0; p =
// 1 gives zeros. ValueError unless 0 <= p <= 1; floating types. The numbers are those of the
// process's generator (tenon::manual_seed), the same on every backend.
TENON_API Tensor dropout(const Tensor& x, double p = 0.5, bool training = true);

}  // namespace tenon
