// Pooling over images of shape (N, C, H, W) or (C, H, W).
#pragma once

#include <optional>

#include <tenon/modules/module.h>
#include <tenon/modules/pair.h>

namespace tenon::nn {

struct MaxPool2dOptions {
  std::optional<Pair> stride = std::nullopt;  // default: the kernel's size
  Pair padding = 0;                           // with -infinity
  Pair dilation = 1;
  bool ceil_mode = false;  // windows that reach over the border count
};

struct TENON_API MaxPool2d final : Module<MaxPool2d> {
  MaxPool2d(Pair kernel_size, const MaxPool2dOptions& options = {});
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Pair kernel_size;
  MaxPool2dOptions options;
};

struct AvgPool2dOptions {
  std::optional<Pair> stride = std::nullopt;  // default: the kernel's size
  Pair padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;  // padded zeros count as elements
};

struct TENON_API AvgPool2d final : Module<AvgPool2d> {
  AvgPool2d(Pair kernel_size, const AvgPool2dOptions& options = {});
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Pair kernel_size;
  AvgPool2dOptions options;
};

// Averages to an output of this height and width, whatever the input's.
struct TENON_API AdaptiveAvgPool2d final : Module<AdaptiveAvgPool2d> {
  AdaptiveAvgPool2d(Pair output_size);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Pair output_size;
};

}  // namespace tenon::nn
