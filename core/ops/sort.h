// Order: sorting, order statistics, distinct values, and places in sorted sequences.
//
// NaN is larger than every number, and sorting is stable: equal elements, and NaN among themselves,
// keep their order. `dim` may be negative; a tensor without dimensions takes 0 and -1. Every
// function throws an IndexError if x has no such dimension, and a ValueError for an undefined
// tensor. Gradients go to the elements that were chosen. Values have the dtype of x, and places are
// i64.
#pragma once

#include <optional>
#include <string_view>

#include <tenon/core/ops/reduction.h>
#include <tenon/core/tensor.h>

namespace tenon {

// Returns the elements along `dim` in rising order, or if `descending` in falling order, and where
// each was, both in the shape of x. `stable` is PyTorch's argument: the order is stable in any
// case.
TENON_API ValuesIndices sort(const Tensor& x, int64_t dim = -1, bool descending = false,
                             bool stable = false);
// Returns sort(x, dim, descending).indices.
TENON_API Tensor argsort(const Tensor& x, int64_t dim = -1, bool descending = false,
                         bool stable = false);
// Returns x with its first dimension sorted in rising order: sort(x, 0).values.
TENON_API Tensor msort(const Tensor& x);
// Returns the k largest elements along `dim`, or the smallest unless `largest`, and where they
// were; of equal ones the first. They are sorted, with `sorted` or without it. A tensor without
// dimensions is its own result for k = 0, too. Throws a ValueError unless k is in [0, x.size(dim)].
TENON_API ValuesIndices topk(const Tensor& x, int64_t k, int64_t dim = -1, bool largest = true,
                             bool sorted = true);
// Returns the k-th smallest element along `dim`, counted from 1, and where it was. Throws a
// ValueError unless k is in [1, x.size(dim)].
TENON_API ValuesIndices kthvalue(const Tensor& x, int64_t k, int64_t dim = -1,
                                 bool keepdim = false);
// Returns the median of all elements, of two in the middle the smaller, as a scalar; NaN if one is
// NaN or there is none. Elements that equal it share the gradient evenly. Throws a ValueError for
// an integer tensor without elements.
TENON_API Tensor median(const Tensor& x);
// Returns the median of each line along `dim` and where it was. Throws a ValueError if there is no
// element to choose from.
TENON_API ValuesIndices median(const Tensor& x, int64_t dim, bool keepdim = false);
// Returns the median of all elements that are not NaN, and NaN if all are. Throws as median.
TENON_API Tensor nanmedian(const Tensor& x);
// Returns the median of the elements of each line along `dim` that are not NaN, or NaN, and where
// it was. Throws as median.
TENON_API ValuesIndices nanmedian(const Tensor& x, int64_t dim, bool keepdim = false);
// Returns the element that occurs most often along `dim`, of several the smallest, and where it was
// last. Throws a ValueError if there is no element to choose from.
TENON_API ValuesIndices mode(const Tensor& x, int64_t dim = -1, bool keepdim = false);

// Returns the q-th quantiles of an f32 or f64 tensor, of all elements or along `dim`. A quantile
// between two elements is computed by `interpolation`: "linear", "lower", "higher", "midpoint" or
// "nearest". A q of shape (k) puts a dimension of size k in front of the result. NaN among the
// elements makes the result NaN. Throws a DTypeError for another dtype of x or if q has another
// than x, a ShapeError if q has more than one dimension, and a ValueError for another
// interpolation or if there is no element. An element of q outside [0, 1] gives NaN.
TENON_API Tensor quantile(const Tensor& x, const Tensor& q,
                          std::optional<int64_t> dim = std::nullopt, bool keepdim = false,
                          std::string_view interpolation = "linear");
// The same with a number as q. Throws a ValueError if it is outside [0, 1].
TENON_API Tensor quantile(const Tensor& x, double q, std::optional<int64_t> dim = std::nullopt,
                          bool keepdim = false, std::string_view interpolation = "linear");
// Returns the quantiles of the elements that are not NaN, and NaN where all are. Throws as
// quantile.
TENON_API Tensor nanquantile(const Tensor& x, const Tensor& q,
                             std::optional<int64_t> dim = std::nullopt, bool keepdim = false,
                             std::string_view interpolation = "linear");
// The same with a number as q. Throws a ValueError if it is outside [0, 1].
TENON_API Tensor nanquantile(const Tensor& x, double q, std::optional<int64_t> dim = std::nullopt,
                             bool keepdim = false, std::string_view interpolation = "linear");

// ---- distinct values ----

// These functions wait for their input, because the shapes of their results depend on its values.

// The results of unique and unique_consecutive; inverse and counts are i64, and undefined unless
// they were asked for.
struct Unique {
  Tensor values, inverse, counts;
};
// Returns the distinct elements of x as a vector in rising order (`sorted` is PyTorch's argument:
// they are sorted in any case), the place of each element of x among them, in the shape of x, and
// how often each of them occurs. With `dim`, the slices of x along it are compared instead of
// elements, and `inverse` is a vector. A NaN equals nothing. No result has a gradient.
TENON_API Unique unique(const Tensor& x, bool sorted = true, bool return_inverse = false,
                        bool return_counts = false, std::optional<int64_t> dim = std::nullopt);
// Returns the same for x in its own order, where an element is dropped only if it equals the one
// before.
TENON_API Unique unique_consecutive(const Tensor& x, bool return_inverse = false,
                                    bool return_counts = false,
                                    std::optional<int64_t> dim = std::nullopt);
// Returns how often each of 0, 1, … occurs in a vector of integers, as i64, or the sum of the
// weights of each in their dtype (f64 for integers). The result has max(x) + 1 elements, at least
// minlength. Throws a ValueError if an element or minlength is negative, a DTypeError unless x has
// an integer dtype, and a ShapeError unless x is a vector and the weights have its shape.
TENON_API Tensor bincount(const Tensor& x, const Tensor& weights = {}, int64_t minlength = 0);

// ---- places in sorted sequences ----

// The options of searchsorted.
struct SearchOptions {
  bool out_int32 = false;  // whether results are i32 instead of i64
  bool right = false;      // whether the place is behind elements that equal the value
  // "left" or "right" as another way to say `right`, which "left" must not contradict; by default
  // `right` alone counts.
  std::string_view side = {};
  Tensor sorter = {};  // what argsort returned for a sequence that is not sorted itself
};
// Returns where each value would be put into a sequence that is sorted along its last dimension, so
// that it stays sorted: before elements that equal it or, with `right`, behind them; i64 in the
// shape of the values. The sequence is a vector, or has the shape of the values except in the last
// dimension. NaN goes to the end. Throws a ShapeError if the shapes do not fit, a DTypeError for
// bool or a sorter that is not i64 or i32, and a ValueError for another side or one that
// contradicts `right`.
TENON_API Tensor searchsorted(const Tensor& sequence, const Tensor& values,
                              const SearchOptions& options = {});
// The same with one number, for which the result has shape ().
TENON_API Tensor searchsorted(const Tensor& sequence, Number value,
                              const SearchOptions& options = {});
// Returns searchsorted(boundaries, x) for a sorted vector of boundaries, with these options. Throws
// a ShapeError unless the boundaries are a vector.
TENON_API Tensor bucketize(const Tensor& x, const Tensor& boundaries, bool out_int32 = false,
                           bool right = false);
// The same with one number, for which the result has shape ().
TENON_API Tensor bucketize(Number x, const Tensor& boundaries, bool out_int32 = false,
                           bool right = false);
// Returns how many elements of a floating tensor fall into each of `bins` intervals of equal width
// from min to max, the last of which includes max: shape (bins), in the dtype of x. Elements
// outside, and NaN, are not counted. Where min equals max, the smallest and the largest element are
// taken for them, one less and one more where these are equal, too. Throws a ValueError if bins is
// not positive, max less than min, or one of both not finite, and a DTypeError unless x is
// floating.
TENON_API Tensor histc(const Tensor& x, int64_t bins = 100, double min = 0, double max = 0);
// Returns as bool, in the shape of x, which elements of x are among the test elements, or which are
// not if `invert` is true. `assume_unique` is PyTorch's argument, and changes nothing.
TENON_API Tensor isin(const Tensor& x, const Tensor& test_elements, bool assume_unique = false,
                      bool invert = false);
// The same with one number as the test element.
TENON_API Tensor isin(const Tensor& x, Number test_element, bool assume_unique = false,
                      bool invert = false);

}  // namespace tenon
