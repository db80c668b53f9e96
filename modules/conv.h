// The convolution layer for images.
#pragma once

#include <tenon/modules/module.h>
#include <tenon/modules/pair.h>

namespace tenon::nn {

struct Conv2dOptions {
  Pair stride = 1;            // distance between neighbouring windows, at least 1
  Pair padding = 0;           // zeros on each side, at least 0
  Pair dilation = 1;          // distance between the kernel's elements, at least 1
  int64_t groups = 1;         // the channels are convolved in this many separate groups
  bool bias = true;           // whether the layer learns a bias
  TensorOptions tensor = {};  // dtype and device of the parameters
};

// Convolves images of shape (N, in_channels, H, W) or (in_channels, H, W) and returns shape
// (N, out_channels, H', W') or (out_channels, H', W'), where
// H' = (H + 2 padding - dilation (kernel - 1) - 1) / stride + 1, and W' likewise. The weight has
// shape (out_channels, in_channels / groups, kernel height, kernel width) and the bias
// (out_channels); both start uniform in (-k, k), where k = 1 / sqrt(in_channels / groups * kernel
// elements). The constructor throws a ValueError for an option outside its range and for channels
// that are not a multiple of `groups`; a call throws a ShapeError or DTypeError for an input that
// does not fit.
struct TENON_API Conv2d final : Module<Conv2d> {
  Conv2d(int64_t in_channels, int64_t out_channels, Pair kernel_size,
         const Conv2dOptions& options = {});
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor& v);
  std::string extra_repr() const;

  int64_t in_channels, out_channels;
  Pair kernel_size;
  Conv2dOptions options;
  Parameter weight, bias;
};

}  // namespace tenon::nn
