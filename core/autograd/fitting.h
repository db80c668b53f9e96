// What a gradient has in common with its tensor.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon {

// Throws unless the gradient has the shape, dtype and device of its tensor. `name` is what the
// error calls the gradient, `other` what it calls the tensor.
void require_fitting(const char* what, const char* name, const Tensor& gradient,
                     const Tensor& tensor, const char* other = "the tensor");

// Gradients are kept in the order of their leaf in memory, as in PyTorch
// (torch/csrc/autograd/functions/accumulate_grad.h), because optimizers take one step over both;
// row-major where the leaf has gaps. Returns whether the gradient of a leaf lies so.
bool lies_as_leaf(const TensorImpl& gradient, const TensorImpl& leaf);
// Returns a copy of a gradient that lies so.
Tensor copy_for_leaf(const Tensor& gradient, const TensorImpl& leaf);

}  // namespace tenon
