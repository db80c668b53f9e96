// Pooling over windows of the last two dimensions. x is (n, c, h, w) or (c, h, w), floating.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon {

// Height and width each.
struct Pool2dOptions {
  Shape stride = {};        // default: the kernel's size
  Shape padding = {0, 0};   // at most half the kernel; -inf for max, 0 for avg
  Shape dilation = {1, 1};  // max_pool2d only
  bool ceil_mode = false;   // round the output's size up; a window that would start in the right
                            // padding is left out
  bool count_include_pad = true;  // avg_pool2d only: padding counts in the divisor
};

// h' = (h + 2 padding - dilation (kernel - 1) - 1) / stride + 1. ShapeError or ValueError where
// shapes or options do not fit, also where a window would lie on padding alone, as a dilation
// larger than the plane can make it.
TENON_API Tensor max_pool2d(const Tensor& x, const Shape& kernel,
                            const Pool2dOptions& options = {});
TENON_API Tensor avg_pool2d(const Tensor& x, const Shape& kernel,
                            const Pool2dOptions& options = {});
// Windows chosen so that the result is (…, output_size[0], output_size[1]).
TENON_API Tensor adaptive_avg_pool2d(const Tensor& x, const Shape& output_size);

}  // namespace tenon
