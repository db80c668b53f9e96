// The convolution layer for images.
#pragma once

#include <tenon/core/ops/convolution.h>
#include <tenon/modules/module.h>

namespace tenon::nn {

// Convolves images of shape (N, in_channels, H, W) or (in_channels, H, W) and returns shape
// (N, out_channels, H', W') or (out_channels, H', W'), where
// H' = (H + 2 padding - dilation (kernel - 1) - 1) / stride + 1, and W' likewise. The weight has
// shape (out_channels, in_channels / groups, kernel height, kernel width) and the bias
// (out_channels); both start uniform in (-k, k), where k = 1 / sqrt(in_channels / groups * kernel
// elements). What the convolution computes and what the layer learns are options of their own:
//   nn::Conv2d(3, 64, 3, {.stride = 2, .padding = 1})
//   nn::Conv2d(3, 64, 3, {.stride = 2, .padding = 1}, {.bias = false})
//   nn::Conv2d(3, 64, 3, {.bias = false})
// The constructor throws a ValueError for an option outside its range and for channels that are not
// a multiple of `groups`; a call throws a ShapeError or DTypeError for an input that does not fit.
struct TENON_API Conv2d final : Module<Conv2d> {
  Conv2d(int64_t in_channels, int64_t out_channels, Pair kernel_size,
         const Conv2dOptions& options = {}, const WeightOptions& weights = {});
  Conv2d(int64_t in_channels, int64_t out_channels, Pair kernel_size, const WeightOptions& weights);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor& v);
  std::string extra_repr() const;

  int64_t in_channels, out_channels;
  Pair kernel_size;
  Conv2dOptions options;
  Parameter weight, bias;  // the bias is undefined if the layer has none
};

}  // namespace tenon::nn
