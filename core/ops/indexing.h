// Selection by index, and writing at indices. core/ops/subscript.h has slices and more.
//
// Indices are i64 or i32 and, where nothing else is said, not negative; every function throws a
// DTypeError for indices of another dtype and a ValueError for an undefined tensor. An index out of
// range is an IndexError of the queued work, which the next wait throws and which names the
// position, the index and the bound. `dim` may be negative; every function throws an IndexError if
// x has no such dimension.
//
// Where an index occurs several times, values are written or added in the order of the index, so
// that the results are the same bits in every run. Values have the dtype of x, or it is a
// DTypeError; a number whose value an integer dtype does not hold is a ValueError. Results have the
// dtype of x.
#pragma once

#include <string_view>
#include <vector>

#include <tenon/core/number.h>
#include <tenon/core/tensor.h>

namespace tenon {

// Returns the rows of the weight (v, d) that the indices name: indices of shape (…) give shape
// (…, d). The row `padding_idx` gets no gradient; with the default -1 every row does. Throws a
// ShapeError if the weight is not a matrix and an IndexError if padding_idx is outside [-1, v).
TENON_API Tensor embedding(const Tensor& indices, const Tensor& weight, int64_t padding_idx = -1);

// Returns the slices of x along `dim` that `index` (k) lists, in its order; the result has size k
// in that dimension. Throws a ShapeError if the index has more than one dimension.
TENON_API Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index);

// Returns a tensor of the shape of `index` with, for dim 0 of a tensor of three dimensions,
// result[i][j][k] = x[index[i][j][k]][j][k], as torch.gather does. Throws a ShapeError if the index
// has another number of dimensions than x or is larger than x in a dimension other than `dim`.
TENON_API Tensor gather(const Tensor& x, int64_t dim, const Tensor& index);

// Returns the elements of the flattened x that the flattened indices name, as a vector. A negative
// index counts from the end.
TENON_API Tensor take_along_dim(const Tensor& x, const Tensor& indices);
// Returns gather(x, dim, indices), where the other dimensions of both broadcast and a negative
// index counts from the end. Throws a ShapeError unless both have as many dimensions.
TENON_API Tensor take_along_dim(const Tensor& x, const Tensor& indices, int64_t dim);
// Returns the elements of x, as if it were flattened, in the shape of `index`. A negative index
// counts from the end. Throws an IndexError for indices of an x without elements.
TENON_API Tensor take(const Tensor& x, const Tensor& index);
// Returns a copy of x with the elements of `source` written at the places where `take` reads, or
// with `accumulate` added there. Throws a ShapeError unless source and index have as many elements,
// and otherwise as take.
TENON_API Tensor put(const Tensor& x, const Tensor& index, const Tensor& source,
                     bool accumulate = false);

// ---- one element an index, as gather ----

// All tensors have as many dimensions. Each function throws a ShapeError if they do not, or if the
// index is larger than src, or than x except along `dim`.

// Returns a copy of x with src[i][j][k] written to [index[i][j][k]][j][k], for dim 0 of a tensor of
// three dimensions; of several elements for one place, the last.
TENON_API Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src);
// Returns a copy of x with this number written at these places.
TENON_API Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, Number value);
// Returns a copy of x with the elements of src added where scatter writes them.
TENON_API Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src);
// Returns a copy of x with the elements of src combined by `reduce`, "sum", "prod", "mean", "amax"
// or "amin", where scatter writes them. The element of x itself takes part unless include_self is
// false. The mean of integers is rounded down. Throws a ValueError for another word. The second
// derivative of "prod" is right unless several elements of one place are 0.
TENON_API Tensor scatter_reduce(const Tensor& x, int64_t dim, const Tensor& index,
                                const Tensor& src, std::string_view reduce,
                                bool include_self = true);

// ---- one slice an index; a ShapeError unless `index` is a vector ----

// Returns a copy of x with alpha times slice i of `source` added to slice index[i] along `dim`.
// Throws a ShapeError unless source has the shape of x except in `dim`, where it is as long as
// index.
TENON_API Tensor index_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                           Number alpha = 1);
// Returns a copy of x with slice i of `source` in place of slice index[i] along `dim`. Shapes and
// errors are those of index_add.
TENON_API Tensor index_copy(const Tensor& x, int64_t dim, const Tensor& index,
                            const Tensor& source);
// Returns a copy of x in which every element of the slices along `dim` that `index` lists is
// `value`.
TENON_API Tensor index_fill(const Tensor& x, int64_t dim, const Tensor& index, Number value);
// The same with a value of shape (), which is converted to the dtype of x and may have a gradient.
// Throws a ShapeError for another shape.
TENON_API Tensor index_fill(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& value);

// ---- several indices ----

// Returns x[indices[0], indices[1], …] by the rules of NumPy: tensors of indices broadcast, and
// their dimensions replace those that they index, or come first where an undefined tensor, which
// stands for a whole dimension, lies between two of them. A negative index counts from the end. A
// tensor of bool, or u8, stands for the places where it is true, and the function then waits for
// it. Throws an IndexError for more indices than dimensions, and a ShapeError if indices do not
// broadcast or a mask has another shape than what it indexes.
TENON_API Tensor index(const Tensor& x, const std::vector<Tensor>& indices);
// Returns a copy of x with values, which broadcast to the shape of index(x, indices), written where
// that reads, or with `accumulate` added there. Throws as index, and a ShapeError for values that
// do not broadcast.
TENON_API Tensor index_put(const Tensor& x, const std::vector<Tensor>& indices,
                           const Tensor& values, bool accumulate = false);
// Writes or adds the values in x itself, as index_put does in a copy. Throws as index_put, and an
// AutogradError where x or the values require a gradient, because this change is not recorded.
TENON_API void index_put_(const Tensor& x, const std::vector<Tensor>& indices, const Tensor& values,
                          bool accumulate = false);

// ---- masks ----

// A mask is bool, or it is a DTypeError. It and x broadcast, or it is a ShapeError.

// Returns the elements of x where the mask is true, as a vector in row-major order. Waits for the
// mask.
TENON_API Tensor masked_select(const Tensor& x, const Tensor& mask);
// Returns x with this value where the mask is true, in the shape to which both broadcast.
TENON_API Tensor masked_fill(const Tensor& x, const Tensor& mask, Number value);
// The same with a value of shape (), which is converted to the dtype of x and may have a gradient.
// Throws a ShapeError for another shape.
TENON_API Tensor masked_fill(const Tensor& x, const Tensor& mask, const Tensor& value);
// Returns x with the elements of `source`, one after the other, where the mask is true, in the
// shape to which x and the mask broadcast. Too few elements are an IndexError of the queued work.
TENON_API Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source);
// Returns the places of the elements of x that are not 0, in row-major order: i64 of shape
// (places, dimensions of x). Waits for x.
TENON_API Tensor nonzero(const Tensor& x);
// Returns the columns of nonzero(x), a vector for each dimension, as `index` takes them.
TENON_API std::vector<Tensor> nonzero_as_tuple(const Tensor& x);
// Returns nonzero(x), by NumPy's name.
TENON_API Tensor argwhere(const Tensor& x);

}  // namespace tenon
