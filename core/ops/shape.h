// Other shapes and orders of the same values. The functions of the first part, and others that say
// so, return views that share the storage of their argument; reshape and flatten copy if they have
// to. Methods of Tensor with these names are the same functions.
//
// Dimensions may be negative and then count from the end. The functions take every dtype, and
// unless they say otherwise the result has that of x. Every function throws an IndexError for a
// dimension that does not exist, a ValueError for an undefined tensor, and a ShapeError for a
// result of more elements than can be addressed.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <tenon/core/number.h>
#include <tenon/core/pair.h>
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
// Returns x with the dimensions `source` at the places `destination` and the others in their order
// between them, as a view. Throws a ValueError unless both list equally many dimensions, each once.
TENON_API Tensor movedim(const Tensor& x, const Shape& source, const Shape& destination);
// Returns transpose(x, axis0, axis1), by NumPy's name.
TENON_API Tensor swapaxes(const Tensor& x, int64_t axis0, int64_t axis1);
// Returns x with the dimension `dim` split into `sizes`, of which one may be -1 and is inferred, as
// reshape does. Throws a ShapeError unless the product of the sizes is that of the dimension.
TENON_API Tensor unflatten(const Tensor& x, int64_t dim, const Shape& sizes);
// Returns expand(x, shape), by NumPy's name.
TENON_API Tensor broadcast_to(const Tensor& x, const Shape& shape);
// Returns the tensors expanded to the shape that they broadcast to, as views. Throws a ShapeError
// if they do not broadcast.
TENON_API std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors);
// Returns expand(x, other.shape()).
TENON_API Tensor expand_as(const Tensor& x, const Tensor& other);
// Returns view(x, other.shape()).
TENON_API Tensor view_as(const Tensor& x, const Tensor& other);
// Returns reshape(x, other.shape()).
TENON_API Tensor reshape_as(const Tensor& x, const Tensor& other);
// Returns x with at least one dimension: a scalar as (1), others as they are.
TENON_API Tensor atleast_1d(const Tensor& x);
// Returns x with at least two dimensions: a scalar as (1, 1), a vector as (1, n).
TENON_API Tensor atleast_2d(const Tensor& x);
// Returns x with at least three dimensions: a scalar as (1, 1, 1), a vector as (1, n, 1), a matrix
// as (m, n, 1).
TENON_API Tensor atleast_3d(const Tensor& x);
// Returns the slices of x along `dim`, without that dimension, as views. Throws a ValueError for
// more than 2^24 of them.
TENON_API std::vector<Tensor> unbind(const Tensor& x, int64_t dim = 0);
// Returns the elements x[i][i + offset] of the matrices that dim1 and dim2 make, as a view, of
// which they are the last dimension. A negative offset lies below the diagonal. Throws a ValueError
// if dim1 and dim2 are the same dimension.
TENON_API Tensor diagonal(const Tensor& x, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1);

// ---- joining and splitting ----

// Returns the tensors one after the other along `dim`, as a new tensor. Dtypes are promoted, and
// empty tensors of shape (0,) are skipped. Throws a ShapeError if other dimensions differ or the
// tensors have none, and a ValueError if there is no tensor.
TENON_API Tensor cat(std::span<const Tensor> tensors, int64_t dim = 0);
// The same with a vector.
TENON_API Tensor cat(const std::vector<Tensor>& tensors, int64_t dim = 0);
// Returns the tensors one after the other along a new dimension, as a new tensor. Dtypes are
// promoted. Throws a ShapeError if the shapes differ, and a ValueError if there is no tensor.
TENON_API Tensor stack(std::span<const Tensor> tensors, int64_t dim = 0);
// The same with a vector.
TENON_API Tensor stack(const std::vector<Tensor>& tensors, int64_t dim = 0);
// Returns pieces of `size` along `dim`, of which the last may be smaller, as views. Throws a
// ValueError for a negative size, for size 0 unless x has size 0 along `dim`, and for more than
// 2^24 pieces.
TENON_API std::vector<Tensor> split(const Tensor& x, int64_t size, int64_t dim = 0);
// Returns pieces of the given sizes along `dim`, as views. Throws a ValueError unless the sizes are
// not negative and add up to x.size(dim).
TENON_API std::vector<Tensor> split(const Tensor& x, const Shape& sizes, int64_t dim = 0);
// Returns at most `chunks` pieces of equal size along `dim`, of which the last may be smaller, as
// views. Throws a ValueError if `chunks` is not positive, and for more than 2^24 pieces.
TENON_API std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int64_t dim = 0);
// Returns `sections` pieces of x along `dim`, of which the first x.size(dim) % sections are one
// larger than the others, as views. Throws a ValueError unless `sections` is from 1 to 2^24.
TENON_API std::vector<Tensor> tensor_split(const Tensor& x, int64_t sections, int64_t dim = 0);
// Returns the pieces of x before, between and after `indices` along `dim`, as views. The indices
// are taken as the bounds of slice: negative ones count from the end.
TENON_API std::vector<Tensor> tensor_split(const Tensor& x, const std::vector<int64_t>& indices,
                                           int64_t dim = 0);
// Returns the tensors side by side: vectors and scalars one after the other, others along the
// second dimension. Dtypes and errors are those of cat, as for the next four functions.
TENON_API Tensor hstack(const std::vector<Tensor>& tensors);
// Returns the tensors, each with at least two dimensions, one below the other, along the first.
TENON_API Tensor vstack(const std::vector<Tensor>& tensors);
// Returns the tensors, each with at least three dimensions, one behind the other, along the third.
TENON_API Tensor dstack(const std::vector<Tensor>& tensors);
// Returns one tensor with vectors and scalars as its columns, and matrices side by side with them.
TENON_API Tensor column_stack(const std::vector<Tensor>& tensors);
// Returns a matrix with the matrices along its diagonal and zeros elsewhere. Scalars and vectors
// are matrices of one row. Throws a ShapeError for more dimensions.
TENON_API Tensor block_diag(const std::vector<Tensor>& tensors);
// Returns one tensor for each vector or scalar, in which it runs along its own dimension and is
// repeated along the others; all have the shape of the lengths, and are views. `indexing` is "ij",
// or "xy", for which the first two dimensions are exchanged. Throws a ValueError for another word
// and a ShapeError for a tensor of more dimensions.
TENON_API std::vector<Tensor> meshgrid(const std::vector<Tensor>& tensors,
                                       std::string_view indexing = "ij");
// Returns all combinations of an element of each vector as rows, in the order of the first vector,
// of shape (combinations, vectors); of one vector, that vector. Throws a ShapeError for tensors
// that are no vectors.
TENON_API Tensor cartesian_prod(const std::vector<Tensor>& tensors);

// ---- other orders, as new tensors ----

// Returns x with the order along each of `dims` reversed. Throws a ValueError for a dimension that
// is listed twice. Unlike in reductions, an empty list means none of them.
TENON_API Tensor flip(const Tensor& x, const Shape& dims);
// Returns x mirrored left to right: flip(x, 1). Throws a ShapeError for less than two dimensions.
TENON_API Tensor fliplr(const Tensor& x);
// Returns x mirrored top to bottom: flip(x, 0). Throws a ShapeError if x has no dimensions.
TENON_API Tensor flipud(const Tensor& x);
// Returns x with its elements moved by shifts[i] along dims[i]; those that leave it come back at
// the other end. Without `dims`, x is shifted as if it had one dimension, and keeps its shape.
// Throws a ValueError unless there are as many shifts as dimensions.
TENON_API Tensor roll(const Tensor& x, const Shape& shifts, const Shape& dims = {});
// Returns x turned by k quarter turns from the first of the two dimensions towards the second.
// Throws a ValueError unless `dims` lists two different dimensions.
TENON_API Tensor rot90(const Tensor& x, int64_t k = 1, const Shape& dims = {0, 1});
// Returns matrices (…, m, n) with zeros above the diagonal number `diagonal`: 0 is the main one,
// positive ones lie above. Throws a ShapeError for less than two dimensions.
TENON_API Tensor tril(const Tensor& x, int64_t diagonal = 0);
// Returns matrices (…, m, n) with zeros below the diagonal number `diagonal`. Throws a ShapeError
// for less than two dimensions.
TENON_API Tensor triu(const Tensor& x, int64_t diagonal = 0);
// Returns a matrix with the vector x on a diagonal and zeros elsewhere, or a copy of that diagonal
// of the matrix x. Throws a ShapeError for other dimensions.
TENON_API Tensor diag(const Tensor& x, int64_t diagonal = 0);
// Returns zeros in which the last dimension of x runs along a diagonal of the new dimensions dim1
// and dim2, counted in the result; a positive offset lies above the main diagonal. Throws a
// ValueError if they are the same dimension, and a ShapeError if x has no dimensions.
TENON_API Tensor diag_embed(const Tensor& x, int64_t offset = 0, int64_t dim1 = -2,
                            int64_t dim2 = -1);
// Returns the sum of the diagonal of a matrix, in i64 for integers and bool. Throws a ShapeError
// for other dimensions.
TENON_API Tensor trace(const Tensor& x);

// ---- repetition and padding, as new tensors ----

// Returns x repeated repeats[i] times along dimension i; more repeats than dimensions of x add
// dimensions in front. Throws a ShapeError for fewer, and a ValueError for a negative number.
TENON_API Tensor repeat(const Tensor& x, const Shape& repeats);
// Returns the same as repeat, where missing repeats in front are 1.
TENON_API Tensor tile(const Tensor& x, const Shape& repeats);
// Returns x with each slice along `dim` repeated in place, `repeats` times; without `dim`, each
// element of the flattened tensor. Throws a ValueError for a negative number.
TENON_API Tensor repeat_interleave(const Tensor& x, int64_t repeats,
                                   std::optional<int64_t> dim = std::nullopt);
// Returns the same with a number for each slice, or one for all: a vector of i64 or i32. It waits
// for these numbers, because the shape of the result depends on them. Throws a ValueError for a
// negative number, a ShapeError for another count of numbers, and a DTypeError for another dtype.
TENON_API Tensor repeat_interleave(const Tensor& x, const Tensor& repeats,
                                   std::optional<int64_t> dim = std::nullopt);
// Returns x with more elements around it: pad[0] before and pad[1] behind the last dimension,
// pad[2] and pad[3] for the one before it, and so on; negative numbers remove elements. `mode` is
// "constant", which fills with `value`, or, for at most three dimensions, "reflect" (the elements
// inside the border, without it), "replicate" (the border) or "circular" (the other end). Throws a
// ValueError for another mode, an odd or too large number of sizes or a value that an integer dtype
// does not hold, and a ShapeError for a pad that is larger than what it repeats or removes more
// than there is.
TENON_API Tensor pad(const Tensor& x, const std::vector<int64_t>& pad,
                     std::string_view mode = "constant", Number value = 0);

// ---- windows ----

// The options of unfold and fold, one number for both dimensions or one for each.
struct UnfoldOptions {
  Pair dilation = 1;  // the distance between the elements of a window, at least 1
  Pair padding = 0;   // how many zeros are added on each side, at least 0
  Pair stride = 1;    // the distance between neighboring windows, at least 1
};
// Returns the windows of x (n, c, h, w) as columns: shape (n, c kh kw, windows), as
// torch.nn.functional.unfold does (im2col); x may be without n. Tensor::unfold is another function,
// a view of the windows along one dimension. Throws a ShapeError for another shape or a kernel that
// does not fit, and a ValueError for an option outside its range.
TENON_API Tensor unfold(const Tensor& x, Pair kernel_size, const UnfoldOptions& options = {});
// Returns the sums of the columns x (n, c kh kw, windows) at their places in an image of
// `output_size`: shape (n, c, h, w), as torch.nn.functional.fold does (col2im); x may be without n,
// and has any dtype but bool. Throws a ShapeError unless the columns are those of unfold, and a
// ValueError for an option outside its range.
TENON_API Tensor fold(const Tensor& x, Pair output_size, Pair kernel_size,
                      const UnfoldOptions& options = {});

// ---- copies ----

// Returns x on another device, or x itself if it is there already. The copy is queued; the gradient
// is copied back. Throws a DeviceError if there is no such device.
TENON_API Tensor to(const Tensor& x, Device device);
// Returns x in another dtype, or x itself if it has that already. Floating values are truncated to
// integers, and bool is x != 0. A gradient passes only from one floating dtype to another.
TENON_API Tensor to(const Tensor& x, DType dtype);
// Returns x with its elements in the order of `format`: x itself if x.suggest_memory_format() is
// that or if it is preserve_format, otherwise a copy without gaps. Operators on the result keep the
// order where the device can. Throws a ShapeError if the format is one of tensors of other
// dimensions.
TENON_API Tensor to(const Tensor& x, MemoryFormat format);
// Returns x in row-major order without gaps, or in that of `format`: x itself if
// x.is_contiguous(format), otherwise a copy. Throws a ShapeError if the format is one of tensors of
// other dimensions, and a ValueError for preserve_format.
TENON_API Tensor contiguous(const Tensor& x, MemoryFormat format = contiguous_format);
// Returns a copy of x without gaps. By default its dimensions are in the order in which those of x
// are in memory; contiguous_format makes it row-major. Throws a ShapeError if the format is one of
// tensors of other dimensions.
TENON_API Tensor clone(const Tensor& x, MemoryFormat format = preserve_format);

}  // namespace tenon
