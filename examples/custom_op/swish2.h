// An operator of a library of its own: x sigmoid(beta x).
#pragma once

#include <tenon/tenon.h>

namespace mylib {

// Returns x sigmoid(beta x), for floating x of any shape. The gradient is that of x; `beta` is a
// fixed number.
tenon::Tensor swish2(const tenon::Tensor& x, double beta);

}  // namespace mylib
