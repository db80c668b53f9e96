// What the functions that make tensors share.
#pragma once

#include <tenon/core/dispatch/op.h>
#include <tenon/core/dtype.h>
#include <tenon/core/tensor.h>

namespace tenon {

// Writes its scalar into every element of a given result.
extern const Op fill_op;

// The dtype of a tensor with these options.
inline DType dtype_of(const TensorOptions& options) { return options.dtype.value_or(DType::f32); }
// Returns memory for a tensor of these options, in the layout of `like` unless they name another.
// Errors begin with `op`.
Tensor new_tensor(const char* op, const Shape& shape, const TensorOptions& options,
                  const Tensor* like = nullptr);
// Returns a tensor whose values are written, in the options' memory format, and a leaf if they say
// so.
Tensor finished(Tensor x, const TensorOptions& options);

}  // namespace tenon
