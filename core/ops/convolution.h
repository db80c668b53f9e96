// Convolution (cross-correlation, as in PyTorch).
#pragma once

#include <tenon/core/tensor.h>

namespace tenon {

// Height and width each.
struct Conv2dOptions {
  Shape stride = {1, 1};
  Shape padding = {0, 0};  // zeros on both sides
  Shape dilation = {1, 1};
  int64_t groups = 1;
};

// x (n, c, h, w) or (c, h, w); weight (o, c / groups, kh, kw); bias (o) or undefined. Gives (n, o,
// h', w') with h' = (h + 2 padding - dilation (kh - 1) - 1) / stride + 1. ShapeError or ValueError
// where shapes or options do not fit.
TENON_API Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = Tensor(),
                        const Conv2dOptions& options = {});

}  // namespace tenon
