// What losses over classes begin with: scores as rows, labels as a list. Not installed.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon {

struct ClassTargets {
  Tensor scores;     // (n, C)
  Tensor labels;     // (n), i64
  Shape loss_shape;  // of an unreduced loss
};

// (N, C), (N, C, d1, …) or (C) with labels (N), (N, d1, …) or (). `weight` (C) is checked where
// defined. ShapeError, DTypeError.
ClassTargets class_targets(const char* op, const Tensor& scores, const Tensor& labels,
                           const Tensor& weight);
// (N, C, d1, …) or (C) as rows (n, C); moves the classes to the end.
Tensor class_rows(const Tensor& scores);

}  // namespace tenon
