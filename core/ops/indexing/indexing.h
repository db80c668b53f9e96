// What operators that choose elements share with those that write at indices.
#pragma once

#include <tenon/core/dispatch/op.h>

namespace tenon {

// Runs `op`, which adds `values` to zeros of `shape` at `index`. Sums of halves are computed in
// f32.
Tensor run_adding(const Op& op, const Shape& shape, const Tensor& values, int64_t dim,
                  const Tensor& index);

// Zeros of `shape` to which `values` are added at `index` along `dim`: the gradient of gather.
// Everything may be without dimensions.
Tensor add_at(const Shape& shape, const Tensor& values, int64_t dim, const Tensor& index);

// Zeros of `shape` to which slice i of `values` is added as slice index[i]: the gradient of
// index_select.
Tensor add_slices_at(const Shape& shape, const Tensor& values, int64_t dim, const Tensor& index);

// Returns the places where a vector of bool is true, as an i64 vector. Waits for its values.
Tensor places_of(const Tensor& mask);
// The number of the element that the i-th of these indices meet in, in a row-major tensor of
// `sizes`. Negative ones count from the end. The indices have one shape.
Tensor ravel_index(const char* op, const std::vector<Tensor>& indices, const Shape& sizes);

// Writes src to x at `index`, or adds it, in place. x is contiguous; nothing is recorded.
void scatter_into(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                  bool accumulate);
// The index of scatter for every element of `source`, of which slice i along `dim` belongs to
// index[i].
Tensor spread_index(const Tensor& index, int64_t dim, const Tensor& source);

}  // namespace tenon
