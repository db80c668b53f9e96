// Other shapes of the same values. All but cat and stack return views that share storage; `reshape`
// copies where it must. The methods of Tensor are the same functions; docstrings are here. Dims may
// be negative and count from the end: IndexError where out of range.
#pragma once

#include <span>
#include <vector>

#include <tenon/core/tensor.h>

namespace tenon {

// One dimension of `shape` may be -1 and is inferred. ShapeError where the number of elements
// differs.
TENON_API Tensor reshape(const Tensor& x, const Shape& shape);
// As reshape, but ShapeError where strides force a copy.
TENON_API Tensor view(const Tensor& x, const Shape& shape);
// Dimensions start_dim … end_dim become one. A scalar becomes shape (1,).
TENON_API Tensor flatten(const Tensor& x, int64_t start_dim = 0, int64_t end_dim = -1);
TENON_API Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1);
// ValueError unless dims holds every dimension once.
TENON_API Tensor permute(const Tensor& x, const Shape& dims);
TENON_API Tensor unsqueeze(const Tensor& x, int64_t dim);
// Without effect where the dimension's size is not 1; without dim: all of size 1.
TENON_API Tensor squeeze(const Tensor& x, int64_t dim);
TENON_API Tensor squeeze(const Tensor& x);
// Dimensions of size 1, and new ones in front, are repeated without a copy (stride 0). -1 keeps a
// size.
TENON_API Tensor expand(const Tensor& x, const Shape& shape);
// length elements of `dim` from start; IndexError where they are not all there.
TENON_API Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length);
// x[start:end:step] along `dim`, with Python's rules: negative bounds count from the end, bounds
// beyond are cut off. step > 0.
TENON_API Tensor slice(const Tensor& x, int64_t dim, int64_t start, int64_t end, int64_t step = 1);
// Without `dim`, at `index`; IndexError where there is no such index.
TENON_API Tensor select(const Tensor& x, int64_t dim, int64_t index);

// One after the other along `dim`; other dimensions agree (ShapeError), types are promoted. Empty
// tensors of shape (0,) are skipped.
TENON_API Tensor cat(std::span<const Tensor> tensors, int64_t dim = 0);
TENON_API Tensor cat(const std::vector<Tensor>& tensors, int64_t dim = 0);
// Along a new dimension; all shapes agree.
TENON_API Tensor stack(std::span<const Tensor> tensors, int64_t dim = 0);
TENON_API Tensor stack(const std::vector<Tensor>& tensors, int64_t dim = 0);
// Pieces of `size` (the last may be smaller), or of the sizes given, which add up to x.size(dim).
TENON_API std::vector<Tensor> split(const Tensor& x, int64_t size, int64_t dim = 0);
TENON_API std::vector<Tensor> split(const Tensor& x, const Shape& sizes, int64_t dim = 0);
// At most `chunks` pieces of equal size (the last may be smaller).
TENON_API std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int64_t dim = 0);

// ---- copies: to another device or type, into one piece ----
// x itself where it is on that device already. Asynchronous; the gradient travels back.
TENON_API Tensor to(const Tensor& x, Device device);
// x itself where it is of that type already. Floating values are truncated to integers; bool is `x
// != 0`.
TENON_API Tensor to(const Tensor& x, DType dtype);
// x itself where it is row-major without gaps already.
TENON_API Tensor contiguous(const Tensor& x);
// Always a copy, row-major.
TENON_API Tensor clone(const Tensor& x);

}  // namespace tenon
