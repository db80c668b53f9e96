// Pooling layers for lines of shape (N, C, L) or (C, L), images of shape (N, C, H, W) or (C, H, W)
// and volumes of shape (N, C, D, H, W) or (C, D, H, W). Stride and padding may stand behind the
// kernel, as in PyTorch: nn::MaxPool2d(3, 2, 1); what else there is are options. Constructors throw
// a ValueError for an option outside its range. Calls throw a ShapeError for an input of another
// rank or smaller than a window, and a ValueError for a padding of more than half a window.
#pragma once

#include <concepts>

#include <tenon/core/ops/pooling.h>
#include <tenon/modules/module.h>

namespace tenon::nn {

// Returns the largest element of each window of lines, as MaxPool2d does of images.
struct TENON_API MaxPool1d final : Module<MaxPool1d> {
  MaxPool1d(Single kernel_size, const MaxPool1dOptions& options = {});
  template <std::integral S>
  MaxPool1d(Single kernel_size, S stride, Single padding = 0)
      : MaxPool1d(kernel_size, {.stride = stride, .padding = padding}) {}
  Tensor forward(const Tensor& x) const;
  ValuesIndices forward_with_indices(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Single kernel_size;
  MaxPool1dOptions options;
};

// Returns the largest element of each window: shape (…, H', W') where
// H' = (H + 2 padding - dilation (kernel - 1) - 1) / stride + 1, rounded up in ceil_mode, and W'
// likewise. forward_with_indices also returns where each lies, as max_pool2d_with_indices does.
struct TENON_API MaxPool2d final : Module<MaxPool2d> {
  MaxPool2d(Pair kernel_size, const MaxPool2dOptions& options = {});
  // A size in braces, which would otherwise be taken for a layer as well.
  MaxPool2d(const int64_t (&kernel_size)[2], const MaxPool2dOptions& options = {})
      : MaxPool2d(Pair(kernel_size[0], kernel_size[1]), options) {}
  template <std::integral S>
  MaxPool2d(Pair kernel_size, S stride, Pair padding = 0)
      : MaxPool2d(kernel_size, {.stride = stride, .padding = padding}) {}
  Tensor forward(const Tensor& x) const;
  ValuesIndices forward_with_indices(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Pair kernel_size;
  MaxPool2dOptions options;
};

// Returns the largest element of each window of volumes, as MaxPool2d does of images.
struct TENON_API MaxPool3d final : Module<MaxPool3d> {
  MaxPool3d(Triple kernel_size, const MaxPool3dOptions& options = {});
  // A size in braces, which would otherwise be taken for a layer as well.
  MaxPool3d(const int64_t (&kernel_size)[3], const MaxPool3dOptions& options = {})
      : MaxPool3d(Triple(kernel_size[0], kernel_size[1], kernel_size[2]), options) {}
  template <std::integral S>
  MaxPool3d(Triple kernel_size, S stride, Triple padding = 0)
      : MaxPool3d(kernel_size, {.stride = stride, .padding = padding}) {}
  Tensor forward(const Tensor& x) const;
  ValuesIndices forward_with_indices(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Triple kernel_size;
  MaxPool3dOptions options;
};

// Returns zeros with the elements of x where MaxPool1d found them: max_unpool1d. The size of the
// result follows from that of x unless it is given.
struct TENON_API MaxUnpool1d final : Module<MaxUnpool1d> {
  MaxUnpool1d(Single kernel_size, Single stride = {}, Single padding = 0);
  Tensor forward(const Tensor& x, const Tensor& indices, const Shape& output_size = {}) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Single kernel_size, stride, padding;
};

// Returns the same of images.
struct TENON_API MaxUnpool2d final : Module<MaxUnpool2d> {
  MaxUnpool2d(Pair kernel_size, Pair stride = {}, Pair padding = 0);
  Tensor forward(const Tensor& x, const Tensor& indices, const Shape& output_size = {}) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Pair kernel_size, stride, padding;
};

// Returns the same of volumes.
struct TENON_API MaxUnpool3d final : Module<MaxUnpool3d> {
  MaxUnpool3d(Triple kernel_size, Triple stride = {}, Triple padding = 0);
  Tensor forward(const Tensor& x, const Tensor& indices, const Shape& output_size = {}) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Triple kernel_size, stride, padding;
};

// Returns the average of each window of lines.
struct TENON_API AvgPool1d final : Module<AvgPool1d> {
  AvgPool1d(Single kernel_size, const AvgPool1dOptions& options = {});
  template <std::integral S>
  AvgPool1d(Single kernel_size, S stride, Single padding = 0)
      : AvgPool1d(kernel_size, {.stride = stride, .padding = padding}) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Single kernel_size;
  AvgPool1dOptions options;
};

// Returns the average of each window; the shape is that of MaxPool2d with dilation 1.
struct TENON_API AvgPool2d final : Module<AvgPool2d> {
  AvgPool2d(Pair kernel_size, const AvgPool2dOptions& options = {});
  // A size in braces, which would otherwise be taken for a layer as well.
  AvgPool2d(const int64_t (&kernel_size)[2], const AvgPool2dOptions& options = {})
      : AvgPool2d(Pair(kernel_size[0], kernel_size[1]), options) {}
  template <std::integral S>
  AvgPool2d(Pair kernel_size, S stride, Pair padding = 0)
      : AvgPool2d(kernel_size, {.stride = stride, .padding = padding}) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Pair kernel_size;
  AvgPool2dOptions options;
};

// Returns the average of each window of volumes.
struct TENON_API AvgPool3d final : Module<AvgPool3d> {
  AvgPool3d(Triple kernel_size, const AvgPool3dOptions& options = {});
  // A size in braces, which would otherwise be taken for a layer as well.
  AvgPool3d(const int64_t (&kernel_size)[3], const AvgPool3dOptions& options = {})
      : AvgPool3d(Triple(kernel_size[0], kernel_size[1], kernel_size[2]), options) {}
  template <std::integral S>
  AvgPool3d(Triple kernel_size, S stride, Triple padding = 0)
      : AvgPool3d(kernel_size, {.stride = stride, .padding = padding}) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Triple kernel_size;
  AvgPool3dOptions options;
};

// Returns (sum x^p)^(1/p) of each window of lines, p being norm_type: lp_pool1d.
struct TENON_API LPPool1d final : Module<LPPool1d> {
  LPPool1d(double norm_type, Single kernel_size, Single stride = {}, bool ceil_mode = false);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  double norm_type;
  Single kernel_size, stride;
  bool ceil_mode;
};

// Returns the same of images.
struct TENON_API LPPool2d final : Module<LPPool2d> {
  LPPool2d(double norm_type, Pair kernel_size, Pair stride = {}, bool ceil_mode = false);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  double norm_type;
  Pair kernel_size, stride;
  bool ceil_mode;
};

// Returns the same of volumes.
struct TENON_API LPPool3d final : Module<LPPool3d> {
  LPPool3d(double norm_type, Triple kernel_size, Triple stride = {}, bool ceil_mode = false);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  double norm_type;
  Triple kernel_size, stride;
  bool ceil_mode;
};

// Returns averages of lines, in windows as those of AdaptiveAvgPool2d.
struct TENON_API AdaptiveAvgPool1d final : Module<AdaptiveAvgPool1d> {
  AdaptiveAvgPool1d(Single output_size);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Single output_size;
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

// Returns averages of volumes, in windows as those of AdaptiveAvgPool2d.
struct TENON_API AdaptiveAvgPool3d final : Module<AdaptiveAvgPool3d> {
  AdaptiveAvgPool3d(Triple output_size);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Triple output_size;
};

// Returns the largest elements of lines, in windows as those of AdaptiveAvgPool2d.
struct TENON_API AdaptiveMaxPool1d final : Module<AdaptiveMaxPool1d> {
  AdaptiveMaxPool1d(Single output_size);
  Tensor forward(const Tensor& x) const;
  ValuesIndices forward_with_indices(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Single output_size;
};

// Returns the largest elements of the windows of AdaptiveAvgPool2d.
struct TENON_API AdaptiveMaxPool2d final : Module<AdaptiveMaxPool2d> {
  AdaptiveMaxPool2d(Pair output_size);
  Tensor forward(const Tensor& x) const;
  ValuesIndices forward_with_indices(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Pair output_size;
};

// Returns the largest elements of volumes, in windows as those of AdaptiveAvgPool2d.
struct TENON_API AdaptiveMaxPool3d final : Module<AdaptiveMaxPool3d> {
  AdaptiveMaxPool3d(Triple output_size);
  Tensor forward(const Tensor& x) const;
  ValuesIndices forward_with_indices(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Triple output_size;
};

}  // namespace tenon::nn
