// The inputs of losses over classes: scores as rows, and labels as a list.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon {

struct ClassTargets {
  Tensor scores;     // (n, C)
  Tensor labels;     // (n), i64
  Shape loss_shape;  // of an unreduced loss
};

// Checks and flattens scores (N, C), (N, C, d1, …) or (C) with labels (N), (N, d1, …) or (), and
// checks the class weights. Throws a ShapeError or DTypeError that begins with `op`.
ClassTargets class_targets(const char* op, const Tensor& scores, const Tensor& labels,
                           const Tensor& weight);
// Throws a ShapeError unless the weight is undefined or has shape (classes).
void require_class_weight(const char* op, const Tensor& weight, int64_t classes);
// Returns scores (N, C, d1, …) or (C) as rows (n, C), with the classes moved to the end.
Tensor class_rows(const Tensor& scores);

}  // namespace tenon
