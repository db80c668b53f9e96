// Pooling over windows of the last two dimensions. x is floating and of shape (n, c, h, w) or
// (c, h, w). Every function throws a ShapeError for another shape or an empty plane, a DTypeError
// for another dtype, and a ValueError for an undefined tensor or an option outside its range.
#pragma once

#include <tenon/core/pair.h>
#include <tenon/core/tensor.h>

namespace tenon {

struct MaxPool2dOptions {
  Pair stride = {};   // distance between windows, at least 1; by default the kernel's size
  Pair padding = 0;   // -infinity on each side, at most half of the kernel
  Pair dilation = 1;  // distance between the kernel's elements, at least 1
  // Whether to round the number of windows up; one that would begin behind the input is left out.
  bool ceil_mode = false;
};

// Returns the largest element of each window, or NaN if the window contains one: shape (…, h', w'),
// where h' = (h + 2 padding - dilation (kernel - 1) - 1) / stride + 1, and w' likewise. The
// gradient goes to the first of equal elements. Throws a ShapeError if the kernel is larger than
// the padded input, or if a window would lie on padding alone, which a dilation larger than the
// plane can cause.
TENON_API Tensor max_pool2d(const Tensor& x, Pair kernel_size,
                            const MaxPool2dOptions& options = {});

struct AvgPool2dOptions {
  Pair stride = {};  // distance between windows, at least 1; by default the kernel's size
  Pair padding = 0;  // zeros on each side, at most half of the kernel
  // Whether to round the number of windows up; one that would begin behind the input is left out.
  bool ceil_mode = false;
  bool count_include_pad = true;  // whether the zeros of the padding count as elements
};

// Returns the average of each window; the shape is that of max_pool2d with dilation 1. Throws a
// ShapeError if the kernel is larger than the padded input.
TENON_API Tensor avg_pool2d(const Tensor& x, Pair kernel_size,
                            const AvgPool2dOptions& options = {});

// Returns averages of shape (…, output_size), whatever the height and width of x: output i is the
// average of x from floor(i h / h') to ceil((i + 1) h / h').
TENON_API Tensor adaptive_avg_pool2d(const Tensor& x, Pair output_size);

}  // namespace tenon
