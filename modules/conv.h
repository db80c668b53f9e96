// Convolution over images.
#pragma once

#include <tenon/modules/module.h>
#include <tenon/modules/pair.h>

namespace tenon::nn {

struct Conv2dOptions {
  Pair stride = 1;
  Pair padding = 0;    // zeros on each side
  Pair dilation = 1;   // distance between the kernel's elements
  int64_t groups = 1;  // channels in as many separate groups
  bool bias = true;
  TensorOptions tensor = {};
};

// x of shape (N, in_channels, H, W) or (in_channels, H, W) to (…, out_channels, H', W'), H' = (H +
// 2 padding - dilation (kernel - 1) - 1) / stride + 1. Weight (out_channels, in_channels / groups,
// kernel) and bias start as U(-k, k), k = 1/sqrt(in_channels / groups * kernel elements).
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
