// What the decompositions (core/ops/decomposition.h) share: checks of their arguments, and systems
// of equations.
#pragma once

#include <string>

#include <tenon/core/dispatch/op.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

// Throws unless x has at least two dimensions and is f32 or f64.
void require_matrices(const char* op, const Tensor& x, const char* name = "x");
// Throws the same, and unless the last two dimensions are equal.
void require_square(const char* op, const Tensor& x, const char* name = "x");

// Returns x^T, for each matrix.
inline Tensor turned(const Tensor& x) { return transpose(x, -1, -2); }
// Returns unit matrices of size n, without batches, with the dtype and device of x.
Tensor unit_like(const Tensor& x, int64_t n);
// Returns all dimensions but the last two.
Shape batches_of(const Tensor& x);
// Returns the shape with the last two dimensions replaced or, where `batch` has none, appended.
Shape matrices_of(Shape batch, int64_t rows, int64_t columns);
// Returns x (…) as (…, 1, 1).
Tensor as_matrices(const Tensor& x);

// The operators of solve.cpp.
extern const Op solve_triangular_op;
// Returns op(a, b), for matrices a (…, n, n) and b (…, n, k), or with a (…, m, n) for others than
// square ones. Batches broadcast; if `a` is one matrix, all columns of b are solved for at once.
Tensor run_system(const Op& op, const Tensor& a, const Tensor& b, const Attrs& attrs = no_attrs);
// Throws a ShapeError unless b has at least two dimensions, and as many rows as `a` has, or as many
// columns as `a` has unless `left`.
void require_system(const char* op, const Tensor& a, const Tensor& b, bool left);
// Returns whether b is a vector, or a batch of vectors, for a (…, m, n), as PyTorch decides it.
bool is_vector_for(const Tensor& a, const Tensor& b);

}  // namespace tenon
