// Convolution, which does not flip the kernel (cross-correlation), as in PyTorch.
#pragma once

#include <tenon/core/pair.h>
#include <tenon/core/tensor.h>

namespace tenon {

struct Conv2dOptions {
  Pair stride = 1;     // distance between neighbouring windows, at least 1
  Pair padding = 0;    // zeros on each side, at least 0
  Pair dilation = 1;   // distance between the kernel's elements, at least 1
  int64_t groups = 1;  // the channels are convolved in this many separate groups
};

// Convolves x (n, c, h, w) or (c, h, w) with a weight (o, c / groups, kh, kw), adds a bias (o)
// unless it is undefined, and returns shape (n, o, h', w') or (o, h', w'), where h' = (h + 2
// padding - dilation (kh - 1) - 1) / stride + 1, and w' likewise. All tensors have one floating
// dtype. Throws a ShapeError, DTypeError or ValueError for tensors or options that do not fit.
TENON_API Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = Tensor(),
                        const Conv2dOptions& options = {});

}  // namespace tenon
