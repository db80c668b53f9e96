// Pooling layers for images of shape (N, C, H, W) or (C, H, W). Constructors throw a ValueError for
// an option outside its range. Calls throw a ShapeError for an input of another rank or smaller
// than a window, and a ValueError for a padding of more than half a window.
#pragma once

#include <tenon/core/ops/pooling.h>
#include <tenon/modules/module.h>

namespace tenon::nn {

// Returns the largest element of each window: shape (…, H', W') where
// H' = (H + 2 padding - dilation (kernel - 1) - 1) / stride + 1, rounded up in ceil_mode, and W'
// likewise.
struct TENON_API MaxPool2d final : Module<MaxPool2d> {
  MaxPool2d(Pair kernel_size, const MaxPool2dOptions& options = {});
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Pair kernel_size;
  MaxPool2dOptions options;
};

// Returns the average of each window; the shape is that of MaxPool2d with dilation 1.
struct TENON_API AvgPool2d final : Module<AvgPool2d> {
  AvgPool2d(Pair kernel_size, const AvgPool2dOptions& options = {});
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Pair kernel_size;
  AvgPool2dOptions options;
};

// Returns averages of shape (…, output_size), whatever the height and width of the input: output i
// is the average of the input from floor(i H / H') to ceil((i + 1) H / H').
struct TENON_API AdaptiveAvgPool2d final : Module<AdaptiveAvgPool2d> {
  AdaptiveAvgPool2d(Pair output_size);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Pair output_size;
};

}  // namespace tenon::nn
