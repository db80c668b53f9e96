// Pooling over windows of the last one, two or three dimensions, and its reverse. x is floating and
// has one or two dimensions more than the windows: (n, c, l) or (c, l), (n, c, h, w) or (c, h, w),
// (n, c, d, h, w) or (c, d, h, w), of which … below is what comes before the windows' dimensions.
// The result has the dtype of x. Every function throws a ShapeError for another shape or where
// these dimensions are empty, a DTypeError for another dtype, and a ValueError for an undefined
// tensor or an option outside its range. Sizes are one number for all dimensions of the windows, or
// one for each.
#pragma once

#include <concepts>
#include <optional>

#include <tenon/core/ops/reduction.h>
#include <tenon/core/pair.h>
#include <tenon/core/tensor.h>

namespace tenon {

// ---- the largest element of each window ----

// The options of max_pool1d, max_pool2d, max_pool3d and of these with indices.
template <class Size>
struct MaxPoolOptions {
  Size stride = {};   // the distance between windows, at least 1; by default the kernel's size
  Size padding = 0;   // how many -infinity are added on each side, at most half of the kernel
  Size dilation = 1;  // the distance between the kernel's elements, at least 1
  // Whether to round the number of windows up; one that would begin behind the input is left out.
  bool ceil_mode = false;
};
using MaxPool1dOptions = MaxPoolOptions<Single>;
using MaxPool2dOptions = MaxPoolOptions<Pair>;
using MaxPool3dOptions = MaxPoolOptions<Triple>;

// Returns the largest element of each window of x (…, h, w), or NaN if the window contains one:
// shape (…, h', w'), where h' = (h + 2 padding - dilation (kernel - 1) - 1) / stride + 1, rounded
// down unless ceil_mode is true, and w' likewise. The gradient goes to the first of equal elements.
// Throws a ShapeError if the kernel is larger than the padded input, or if a window would lie on
// padding alone, which a dilation larger than the plane can cause.
TENON_API Tensor max_pool2d(const Tensor& x, Pair kernel_size,
                            const MaxPool2dOptions& options = {});
// Returns the same in one dimension: shape (…, l') for x (…, l).
TENON_API Tensor max_pool1d(const Tensor& x, Single kernel_size,
                            const MaxPool1dOptions& options = {});
// Returns the same in three dimensions: shape (…, d', h', w') for x (…, d, h, w).
TENON_API Tensor max_pool3d(const Tensor& x, Triple kernel_size,
                            const MaxPool3dOptions& options = {});

// Returns max_pool1d with the stride and the padding behind the kernel, as PyTorch has them:
// max_pool1d(x, 3, 2, 1).
template <std::integral S>
Tensor max_pool1d(const Tensor& x, Single kernel_size, S stride, Single padding = 0) {
  return max_pool1d(x, kernel_size, {.stride = stride, .padding = padding});
}
// Returns max_pool2d with its arguments in the same order: max_pool2d(x, 3, 2, 1).
template <std::integral S>
Tensor max_pool2d(const Tensor& x, Pair kernel_size, S stride, Pair padding = 0) {
  return max_pool2d(x, kernel_size, {.stride = stride, .padding = padding});
}
// Returns max_pool3d with its arguments in the same order: max_pool3d(x, 3, 2, 1).
template <std::integral S>
Tensor max_pool3d(const Tensor& x, Triple kernel_size, S stride, Triple padding = 0) {
  return max_pool3d(x, kernel_size, {.stride = stride, .padding = padding});
}

// Returns the largest elements, as max_pool1d does, and as i64 where each lies in its line, counted
// from 0: PyTorch's return_indices = True, for max_unpool1d. Throws as max_pool1d.
TENON_API ValuesIndices max_pool1d_with_indices(const Tensor& x, Single kernel_size,
                                                const MaxPool1dOptions& options = {});
// Returns the same for planes, in which elements are counted in row-major order.
TENON_API ValuesIndices max_pool2d_with_indices(const Tensor& x, Pair kernel_size,
                                                const MaxPool2dOptions& options = {});
// Returns the same for volumes, in which elements are counted in row-major order.
TENON_API ValuesIndices max_pool3d_with_indices(const Tensor& x, Triple kernel_size,
                                                const MaxPool3dOptions& options = {});

// Returns zeros with the elements of x (…, l) at `indices`, which max_pool1d_with_indices gave for
// windows of this kernel, stride and padding; where several share a place, one of them. The result
// is (…, l') with l' = (l - 1) stride - 2 padding + kernel, or `output_size`, which may differ from
// that by less than the stride. An index outside the result is an IndexError of the queued work.
// Throws a ShapeError if indices have another shape than x, and a DTypeError unless they are i64 or
// i32.
TENON_API Tensor max_unpool1d(const Tensor& x, const Tensor& indices, Single kernel_size,
                              Single stride = {}, Single padding = 0,
                              const Shape& output_size = {});
// Returns the same in two dimensions, by the indices of max_pool2d_with_indices.
TENON_API Tensor max_unpool2d(const Tensor& x, const Tensor& indices, Pair kernel_size,
                              Pair stride = {}, Pair padding = 0, const Shape& output_size = {});
// Returns the same in three dimensions, by the indices of max_pool3d_with_indices.
TENON_API Tensor max_unpool3d(const Tensor& x, const Tensor& indices, Triple kernel_size,
                              Triple stride = {}, Triple padding = 0,
                              const Shape& output_size = {});

// ---- the average of each window ----

// The options of avg_pool1d, avg_pool2d and avg_pool3d.
template <class Size>
struct AvgPoolOptions {
  Size stride = {};  // the distance between windows, at least 1; by default the kernel's size
  Size padding = 0;  // how many zeros are added on each side, at most half of the kernel
  // Whether to round the number of windows up; one that would begin behind the input is left out.
  bool ceil_mode = false;
  bool count_include_pad = true;  // whether the zeros of the padding count as elements
  // What the sum of each window is divided by instead of the number of its elements; not 0.
  std::optional<int64_t> divisor_override = std::nullopt;
};
using AvgPool1dOptions = AvgPoolOptions<Single>;
using AvgPool2dOptions = AvgPoolOptions<Pair>;
using AvgPool3dOptions = AvgPoolOptions<Triple>;

// Returns the average of each window of x (…, h, w), of the shape that max_pool2d gives with
// dilation 1. The part of a window that lies beyond the padding, with ceil_mode, never counts.
// Throws a ShapeError if the kernel is larger than the padded input.
TENON_API Tensor avg_pool2d(const Tensor& x, Pair kernel_size,
                            const AvgPool2dOptions& options = {});
// Returns the same in one dimension, for x (…, l).
TENON_API Tensor avg_pool1d(const Tensor& x, Single kernel_size,
                            const AvgPool1dOptions& options = {});
// Returns the same in three dimensions, for x (…, d, h, w).
TENON_API Tensor avg_pool3d(const Tensor& x, Triple kernel_size,
                            const AvgPool3dOptions& options = {});

// Returns avg_pool1d with the stride and the padding behind the kernel, as PyTorch has them:
// avg_pool1d(x, 3, 2, 1).
template <std::integral S>
Tensor avg_pool1d(const Tensor& x, Single kernel_size, S stride, Single padding = 0) {
  return avg_pool1d(x, kernel_size, {.stride = stride, .padding = padding});
}
// Returns avg_pool2d with its arguments in the same order: avg_pool2d(x, 3, 2, 1).
template <std::integral S>
Tensor avg_pool2d(const Tensor& x, Pair kernel_size, S stride, Pair padding = 0) {
  return avg_pool2d(x, kernel_size, {.stride = stride, .padding = padding});
}
// Returns avg_pool3d with its arguments in the same order: avg_pool3d(x, 3, 2, 1).
template <std::integral S>
Tensor avg_pool3d(const Tensor& x, Triple kernel_size, S stride, Triple padding = 0) {
  return avg_pool3d(x, kernel_size, {.stride = stride, .padding = padding});
}

// Returns (sum x^p)^(1/p) of each window of x (…, l) for p = norm_type, where odd powers keep their
// sign: the average of the powers times the size of the kernel, as in PyTorch. An infinite p gives
// the largest absolute value, minus infinity the smallest. The stride is by default the kernel's
// size, and the shape is that of max_pool1d without padding. Throws a ValueError if p is 0 or NaN,
// and a ShapeError if the kernel is larger than the input.
TENON_API Tensor lp_pool1d(const Tensor& x, double norm_type, Single kernel_size,
                           Single stride = {}, bool ceil_mode = false);
// Returns the same in two dimensions, for x (…, h, w).
TENON_API Tensor lp_pool2d(const Tensor& x, double norm_type, Pair kernel_size, Pair stride = {},
                           bool ceil_mode = false);
// Returns the same in three dimensions, for x (…, d, h, w).
TENON_API Tensor lp_pool3d(const Tensor& x, double norm_type, Triple kernel_size,
                           Triple stride = {}, bool ceil_mode = false);

// ---- windows that follow from the size of the result ----

// Returns averages of shape (…, h', w') for output_size (h', w'), whatever the height and width of
// x: row i is the average of the rows of x from floor(i h / h') up to but not including
// ceil((i + 1) h / h'), and columns likewise. Throws a ValueError for a negative size.
TENON_API Tensor adaptive_avg_pool2d(const Tensor& x, Pair output_size);
// Returns the same in one dimension: shape (…, l') for x (…, l).
TENON_API Tensor adaptive_avg_pool1d(const Tensor& x, Single output_size);
// Returns the same in three dimensions: shape (…, d', h', w') for x (…, d, h, w).
TENON_API Tensor adaptive_avg_pool3d(const Tensor& x, Triple output_size);

// Returns the largest elements of the windows of adaptive_avg_pool1d, whose shape and errors it
// has, with the gradient of max_pool1d.
TENON_API Tensor adaptive_max_pool1d(const Tensor& x, Single output_size);
// Returns the same in two dimensions.
TENON_API Tensor adaptive_max_pool2d(const Tensor& x, Pair output_size);
// Returns the same in three dimensions.
TENON_API Tensor adaptive_max_pool3d(const Tensor& x, Triple output_size);
// Returns adaptive_max_pool1d(x, output_size) and, as i64, where these elements lie in their line,
// as max_pool1d_with_indices does.
TENON_API ValuesIndices adaptive_max_pool1d_with_indices(const Tensor& x, Single output_size);
// Returns the same for planes, in which elements are counted in row-major order.
TENON_API ValuesIndices adaptive_max_pool2d_with_indices(const Tensor& x, Pair output_size);
// Returns the same for volumes, in which elements are counted in row-major order.
TENON_API ValuesIndices adaptive_max_pool3d_with_indices(const Tensor& x, Triple output_size);

}  // namespace tenon
