// What a gradient has in common with its tensor.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon {

// Throws unless the gradient has the shape, dtype and device of its tensor. `name` is what the
// error calls the gradient, `other` what it calls the tensor.
void require_fitting(const char* what, const char* name, const Tensor& gradient,
                     const Tensor& tensor, const char* other = "the tensor");

}  // namespace tenon
