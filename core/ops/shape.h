// Other shapes of the same values. All functions but cat and stack return views that share the
// storage of their argument; reshape and flatten copy if they have to. Methods of Tensor with these
// names are the same functions.
//
// Dimensions may be negative and then count from the end. Every function throws an IndexError for a
// dimension that does not exist and a ValueError for an undefined tensor.
#pragma once

#include <span>
#include <vector>

#include <tenon/core/tensor.h>

namespace tenon {

// Returns the values of x in row-major order in another shape, of which one dimension may be -1 and
// is inferred. Throws a ShapeError if the number of elements differs.
TENON_API Tensor reshape(const Tensor& x, const Shape& shape);
// Returns the same as reshape, but throws a ShapeError if the strides of x require a copy.
TENON_API Tensor view(const Tensor& x, const Shape& shape);
// Returns x with the dimensions start_dim to end_dim, both included, joined into one. A scalar gets
// shape (1,). Throws a ValueError if start_dim comes after end_dim.
TENON_API Tensor flatten(const Tensor& x, int64_t start_dim = 0, int64_t end_dim = -1);
// Returns x with two dimensions exchanged. A scalar is returned as it is.
TENON_API Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1);
// Returns x with its dimensions in the order `dims`. Throws a ValueError unless `dims` lists every
// dimension once.
TENON_API Tensor permute(const Tensor& x, const Shape& dims);
// Returns x with a new dimension of size 1 at position `dim`.
TENON_API Tensor unsqueeze(const Tensor& x, int64_t dim);
// Returns x without the dimension `dim` if its size is 1, otherwise x itself.
TENON_API Tensor squeeze(const Tensor& x, int64_t dim);
// Returns x without all dimensions of size 1.
TENON_API Tensor squeeze(const Tensor& x);
// Returns x in a larger shape: dimensions of size 1 and new dimensions in front are repeated
// without a copy, with stride 0. A size of -1 keeps that of x. Throws a ShapeError if x cannot be
// expanded to the shape.
TENON_API Tensor expand(const Tensor& x, const Shape& shape);
// Returns `length` slices of x along `dim` from `start` on; a negative start counts from the end.
// Throws an IndexError unless x has all of them.
TENON_API Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length);
// Returns x[start:end:step] along `dim` by the rules of Python: negative bounds count from the end,
// and bounds outside x are moved to its ends. Throws a ValueError unless step is positive.
TENON_API Tensor slice(const Tensor& x, int64_t dim, int64_t start, int64_t end, int64_t step = 1);
// Returns the slice of x at `index` along `dim`, without that dimension. A negative index counts
// from the end. Throws an IndexError if there is no such slice.
TENON_API Tensor select(const Tensor& x, int64_t dim, int64_t index);

// Returns the tensors one after the other along `dim`, as a new tensor. Dtypes are promoted, and
// empty tensors of shape (0,) are skipped. Throws a ShapeError if other dimensions differ or the
// tensors have none, and a ValueError if there is no tensor.
TENON_API Tensor cat(std::span<const Tensor> tensors, int64_t dim = 0);
TENON_API Tensor cat(const std::vector<Tensor>& tensors, int64_t dim = 0);
// Returns the tensors one after the other along a new dimension, as a new tensor. Dtypes are
// promoted. Throws a ShapeError if the shapes differ, and a ValueError if there is no tensor.
TENON_API Tensor stack(std::span<const Tensor> tensors, int64_t dim = 0);
TENON_API Tensor stack(const std::vector<Tensor>& tensors, int64_t dim = 0);
// Returns pieces of `size` along `dim`, of which the last may be smaller. Throws a ValueError for a
// negative size, for size 0 unless x has size 0 along `dim`, and for more than 2^24 pieces.
TENON_API std::vector<Tensor> split(const Tensor& x, int64_t size, int64_t dim = 0);
// Returns pieces of the given sizes along `dim`. Throws a ValueError unless the sizes are not
// negative and add up to x.size(dim).
TENON_API std::vector<Tensor> split(const Tensor& x, const Shape& sizes, int64_t dim = 0);
// Returns at most `chunks` pieces of equal size along `dim`, of which the last may be smaller.
// Throws a ValueError if `chunks` is not positive, and for more than 2^24 pieces.
TENON_API std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int64_t dim = 0);

// ---- copies ----

// Returns x on another device, or x itself if it is there already. The copy is queued; the gradient
// is copied back. Throws a DeviceError if there is no such device.
TENON_API Tensor to(const Tensor& x, Device device);
// Returns x in another dtype, or x itself if it has that already. Floating values are truncated to
// integers, and bool is x != 0. A gradient passes only from one floating dtype to another.
TENON_API Tensor to(const Tensor& x, DType dtype);
// Returns x in row-major order without gaps: x itself if it is, otherwise a copy.
TENON_API Tensor contiguous(const Tensor& x);
// Returns a copy of x in row-major order.
TENON_API Tensor clone(const Tensor& x);

}  // namespace tenon
