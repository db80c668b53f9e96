// Pooling layers for lines of shape (N, C, L) or (C, L), images of shape (N, C, H, W) or (C, H, W)
// and volumes of shape (N, C, D, H, W) or (C, D, H, W), which are floating. The result has the
// dtype and the first dimensions of the input, and the sizes that each layer says. Constructors
// throw a ValueError for an option outside its range. Calls throw a ShapeError for an input of
// another rank or smaller than a window, and a ValueError for a padding of more than half a window
// or a divisor_override of 0.
//
// Stride and padding may follow the kernel directly, as in PyTorch: nn::MaxPool2d(3, 2, 1) is
// nn::MaxPool2d(3, {.stride = 2, .padding = 1}). Constructors of their own take a size in braces,
// as in nn::MaxPool2d({3, 2}): without them, {3, 2} could also be a layer that is to be copied.
#pragma once

#include <concepts>

#include <tenon/core/ops/pooling.h>
#include <tenon/modules/module.h>

namespace tenon::nn {

// Returns the largest element of each window of lines (…, L): shape (…, L'), where
// L' = (L + 2 padding - dilation (kernel - 1) - 1) / stride + 1, rounded down, or up in ceil_mode.
struct TENON_API MaxPool1d final : Module<MaxPool1d> {
  MaxPool1d(Single kernel_size, const MaxPool1dOptions& options = {});
  // Makes the layer with a stride and a padding, as the introduction says.
  template <std::integral S>
  MaxPool1d(Single kernel_size, S stride, Single padding = 0)
      : MaxPool1d(kernel_size, {.stride = stride, .padding = padding}) {}
  Tensor forward(const Tensor& x) const;
  // Returns the result of forward and, as i64 of its shape, where each element lies in its line.
  ValuesIndices forward_with_indices(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Single kernel_size;
  MaxPool1dOptions options;
};

// Returns the largest element of each window of images (…, H, W): shape (…, H', W'), where H' and
// W' follow from H and W as L' does from L in MaxPool1d.
struct TENON_API MaxPool2d final : Module<MaxPool2d> {
  MaxPool2d(Pair kernel_size, const MaxPool2dOptions& options = {});
  // Makes the layer with a size in braces: {height, width}.
  MaxPool2d(const int64_t (&kernel_size)[2], const MaxPool2dOptions& options = {})
      : MaxPool2d(Pair(kernel_size[0], kernel_size[1]), options) {}
  // Makes the layer with a stride and a padding, as the introduction says.
  template <std::integral S>
  MaxPool2d(Pair kernel_size, S stride, Pair padding = 0)
      : MaxPool2d(kernel_size, {.stride = stride, .padding = padding}) {}
  Tensor forward(const Tensor& x) const;
  // Returns the result of forward and, as i64 of its shape, where each element lies in its image,
  // counted in row-major order.
  ValuesIndices forward_with_indices(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Pair kernel_size;
  MaxPool2dOptions options;
};

// Returns the largest element of each window of volumes (…, D, H, W): shape (…, D', H', W'), with
// sizes that follow as L' does from L in MaxPool1d.
struct TENON_API MaxPool3d final : Module<MaxPool3d> {
  MaxPool3d(Triple kernel_size, const MaxPool3dOptions& options = {});
  // Makes the layer with a size in braces: {depth, height, width}.
  MaxPool3d(const int64_t (&kernel_size)[3], const MaxPool3dOptions& options = {})
      : MaxPool3d(Triple(kernel_size[0], kernel_size[1], kernel_size[2]), options) {}
  // Makes the layer with a stride and a padding, as the introduction says.
  template <std::integral S>
  MaxPool3d(Triple kernel_size, S stride, Triple padding = 0)
      : MaxPool3d(kernel_size, {.stride = stride, .padding = padding}) {}
  Tensor forward(const Tensor& x) const;
  // Returns the result of forward and, as i64 of its shape, where each element lies in its volume,
  // counted in row-major order.
  ValuesIndices forward_with_indices(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Triple kernel_size;
  MaxPool3dOptions options;
};

// Returns zeros with the elements of x (…, L) at `indices`, where MaxPool1d found them, by
// max_unpool1d, whose errors calls throw. The last dimension of the result is
// (L - 1) stride - 2 padding + kernel, or that of `output_size`, which may differ from it by less
// than the stride. The stride is by default the kernel's size.
struct TENON_API MaxUnpool1d final : Module<MaxUnpool1d> {
  MaxUnpool1d(Single kernel_size, Single stride = {}, Single padding = 0);
  Tensor forward(const Tensor& x, const Tensor& indices, const Shape& output_size = {}) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Single kernel_size, stride, padding;
};

// Returns the same of images (…, H, W), where MaxPool2d found the elements, by max_unpool2d.
struct TENON_API MaxUnpool2d final : Module<MaxUnpool2d> {
  MaxUnpool2d(Pair kernel_size, Pair stride = {}, Pair padding = 0);
  Tensor forward(const Tensor& x, const Tensor& indices, const Shape& output_size = {}) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Pair kernel_size, stride, padding;
};

// Returns the same of volumes (…, D, H, W), where MaxPool3d found the elements, by max_unpool3d.
struct TENON_API MaxUnpool3d final : Module<MaxUnpool3d> {
  MaxUnpool3d(Triple kernel_size, Triple stride = {}, Triple padding = 0);
  Tensor forward(const Tensor& x, const Tensor& indices, const Shape& output_size = {}) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Triple kernel_size, stride, padding;
};

// Returns the average of each window of lines (…, L): shape (…, L'), with L' as of MaxPool1d with
// dilation 1.
struct TENON_API AvgPool1d final : Module<AvgPool1d> {
  AvgPool1d(Single kernel_size, const AvgPool1dOptions& options = {});
  // Makes the layer with a stride and a padding, as the introduction says.
  template <std::integral S>
  AvgPool1d(Single kernel_size, S stride, Single padding = 0)
      : AvgPool1d(kernel_size, {.stride = stride, .padding = padding}) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Single kernel_size;
  AvgPool1dOptions options;
};

// Returns the average of each window of images (…, H, W): shape (…, H', W'), with sizes as of
// MaxPool2d with dilation 1.
struct TENON_API AvgPool2d final : Module<AvgPool2d> {
  AvgPool2d(Pair kernel_size, const AvgPool2dOptions& options = {});
  // Makes the layer with a size in braces: {height, width}.
  AvgPool2d(const int64_t (&kernel_size)[2], const AvgPool2dOptions& options = {})
      : AvgPool2d(Pair(kernel_size[0], kernel_size[1]), options) {}
  // Makes the layer with a stride and a padding, as the introduction says.
  template <std::integral S>
  AvgPool2d(Pair kernel_size, S stride, Pair padding = 0)
      : AvgPool2d(kernel_size, {.stride = stride, .padding = padding}) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Pair kernel_size;
  AvgPool2dOptions options;
};

// Returns the average of each window of volumes (…, D, H, W): shape (…, D', H', W'), with sizes as
// of MaxPool3d with dilation 1.
struct TENON_API AvgPool3d final : Module<AvgPool3d> {
  AvgPool3d(Triple kernel_size, const AvgPool3dOptions& options = {});
  // Makes the layer with a size in braces: {depth, height, width}.
  AvgPool3d(const int64_t (&kernel_size)[3], const AvgPool3dOptions& options = {})
      : AvgPool3d(Triple(kernel_size[0], kernel_size[1], kernel_size[2]), options) {}
  // Makes the layer with a stride and a padding, as the introduction says.
  template <std::integral S>
  AvgPool3d(Triple kernel_size, S stride, Triple padding = 0)
      : AvgPool3d(kernel_size, {.stride = stride, .padding = padding}) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Triple kernel_size;
  AvgPool3dOptions options;
};

// Returns (sum x^p)^(1/p) of each window of lines (…, L), where p is norm_type, by lp_pool1d: shape
// (…, L'), with L' as of MaxPool1d without padding and dilation. The stride is by default the
// kernel's size. The constructor throws a ValueError if norm_type is 0 or NaN.
struct TENON_API LPPool1d final : Module<LPPool1d> {
  LPPool1d(double norm_type, Single kernel_size, Single stride = {}, bool ceil_mode = false);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  double norm_type;
  Single kernel_size, stride;
  bool ceil_mode;
};

// Returns the same of each window of images (…, H, W), by lp_pool2d: shape (…, H', W').
struct TENON_API LPPool2d final : Module<LPPool2d> {
  LPPool2d(double norm_type, Pair kernel_size, Pair stride = {}, bool ceil_mode = false);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  double norm_type;
  Pair kernel_size, stride;
  bool ceil_mode;
};

// Returns the same of each window of volumes (…, D, H, W), by lp_pool3d: shape (…, D', H', W').
struct TENON_API LPPool3d final : Module<LPPool3d> {
  LPPool3d(double norm_type, Triple kernel_size, Triple stride = {}, bool ceil_mode = false);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  double norm_type;
  Triple kernel_size, stride;
  bool ceil_mode;
};

// Returns averages of lines (…, L), whatever their length: shape (…, output_size), where output i
// is the average of the input from floor(i L / L') to ceil((i + 1) L / L') and L' is output_size.
struct TENON_API AdaptiveAvgPool1d final : Module<AdaptiveAvgPool1d> {
  AdaptiveAvgPool1d(Single output_size);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Single output_size;
};

// Returns averages of images (…, H, W), whatever their height and width: shape (…, output_size),
// with windows that in each dimension are those of AdaptiveAvgPool1d.
struct TENON_API AdaptiveAvgPool2d final : Module<AdaptiveAvgPool2d> {
  AdaptiveAvgPool2d(Pair output_size);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Pair output_size;
};

// Returns averages of volumes (…, D, H, W), whatever their sizes: shape (…, output_size), with
// windows that in each dimension are those of AdaptiveAvgPool1d.
struct TENON_API AdaptiveAvgPool3d final : Module<AdaptiveAvgPool3d> {
  AdaptiveAvgPool3d(Triple output_size);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Triple output_size;
};

// Returns the largest elements of lines (…, L), in the windows of AdaptiveAvgPool1d: shape
// (…, output_size).
struct TENON_API AdaptiveMaxPool1d final : Module<AdaptiveMaxPool1d> {
  AdaptiveMaxPool1d(Single output_size);
  Tensor forward(const Tensor& x) const;
  // Returns the result of forward and where each element lies, as that of MaxPool1d does.
  ValuesIndices forward_with_indices(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Single output_size;
};

// Returns the largest elements of images (…, H, W), in the windows of AdaptiveAvgPool2d: shape
// (…, output_size).
struct TENON_API AdaptiveMaxPool2d final : Module<AdaptiveMaxPool2d> {
  AdaptiveMaxPool2d(Pair output_size);
  Tensor forward(const Tensor& x) const;
  // Returns the result of forward and where each element lies, as that of MaxPool2d does.
  ValuesIndices forward_with_indices(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Pair output_size;
};

// Returns the largest elements of volumes (…, D, H, W), in the windows of AdaptiveAvgPool3d: shape
// (…, output_size).
struct TENON_API AdaptiveMaxPool3d final : Module<AdaptiveMaxPool3d> {
  AdaptiveMaxPool3d(Triple output_size);
  Tensor forward(const Tensor& x) const;
  // Returns the result of forward and where each element lies, as that of MaxPool3d does.
  ValuesIndices forward_with_indices(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Triple output_size;
};

}  // namespace tenon::nn
