#include <cmath>

#include <tenon/core/format.h>
#include <tenon/modules/pool.h>
#include <tenon/modules/repr.h>

namespace tenon::nn {

namespace {

// Checks the options of a pooling and completes the stride.
template <class Options, class Size>
Options checked_options(Options options, const Size& kernel, const char* layer) {
  if (!options.stride.given()) options.stride = kernel;
  require_size(kernel, 1, layer, "kernel_size");
  require_size(options.stride, 1, layer, "stride");
  require_size(options.padding, 0, layer, "padding");
  if constexpr (requires { options.dilation; })
    require_size(options.dilation, 1, layer, "dilation");
  return options;
}

template <class Size>
Size checked_output(const Size& size, const char* layer) {
  require_size(size, 1, layer, "output_size");
  return size;
}

template <class Size>
std::string max_repr(const Size& kernel, const MaxPoolOptions<Size>& o) {
  return fmt::format("kernel_size={}, stride={}, padding={}, dilation={}, ceil_mode={}",
                     repr(kernel), repr(o.stride), repr(o.padding), repr(o.dilation),
                     repr(o.ceil_mode));
}

template <class Size>
std::string avg_repr(const Size& kernel, const AvgPoolOptions<Size>& o) {
  return fmt::format("kernel_size={}, stride={}, padding={}", repr(kernel), repr(o.stride),
                     repr(o.padding));
}

template <class Size>
void check_norm(double norm_type, const Size& kernel, const Size& stride, const char* layer) {
  require(norm_type != 0 && !std::isnan(norm_type), layer, "norm_type", norm_type,
          "a number other than 0");
  require_size(kernel, 1, layer, "kernel_size");
  if (stride.given()) require_size(stride, 1, layer, "stride");
}

template <class Size>
std::string norm_repr(double norm_type, const Size& kernel, const Size& stride, bool ceil_mode) {
  return fmt::format("norm_type={}, kernel_size={}, stride={}, ceil_mode={}", repr(norm_type),
                     repr(kernel), stride.given() ? repr(stride) : "None", repr(ceil_mode));
}

}  // namespace

MaxPool1d::MaxPool1d(Single kernel, const MaxPool1dOptions& o)
    : kernel_size(kernel), options(checked_options(o, kernel, "MaxPool1d")) {}
Tensor MaxPool1d::forward(const Tensor& x) const { return max_pool1d(x, kernel_size, options); }
ValuesIndices MaxPool1d::forward_with_indices(const Tensor& x) const {
  return max_pool1d_with_indices(x, kernel_size, options);
}
std::string MaxPool1d::extra_repr() const { return max_repr(kernel_size, options); }

MaxPool2d::MaxPool2d(Pair kernel, const MaxPool2dOptions& o)
    : kernel_size(kernel), options(checked_options(o, kernel, "MaxPool2d")) {}
Tensor MaxPool2d::forward(const Tensor& x) const { return max_pool2d(x, kernel_size, options); }
ValuesIndices MaxPool2d::forward_with_indices(const Tensor& x) const {
  return max_pool2d_with_indices(x, kernel_size, options);
}
std::string MaxPool2d::extra_repr() const { return max_repr(kernel_size, options); }

MaxPool3d::MaxPool3d(Triple kernel, const MaxPool3dOptions& o)
    : kernel_size(kernel), options(checked_options(o, kernel, "MaxPool3d")) {}
Tensor MaxPool3d::forward(const Tensor& x) const { return max_pool3d(x, kernel_size, options); }
ValuesIndices MaxPool3d::forward_with_indices(const Tensor& x) const {
  return max_pool3d_with_indices(x, kernel_size, options);
}
std::string MaxPool3d::extra_repr() const { return max_repr(kernel_size, options); }

AvgPool1d::AvgPool1d(Single kernel, const AvgPool1dOptions& o)
    : kernel_size(kernel), options(checked_options(o, kernel, "AvgPool1d")) {}
Tensor AvgPool1d::forward(const Tensor& x) const { return avg_pool1d(x, kernel_size, options); }
std::string AvgPool1d::extra_repr() const {
  // PyTorch prints these numbers as tuples.
  return fmt::format("kernel_size={}, stride={}, padding={}", kernel_size.shape(),
                     options.stride.shape(), options.padding.shape());
}

AvgPool2d::AvgPool2d(Pair kernel, const AvgPool2dOptions& o)
    : kernel_size(kernel), options(checked_options(o, kernel, "AvgPool2d")) {}
Tensor AvgPool2d::forward(const Tensor& x) const { return avg_pool2d(x, kernel_size, options); }
std::string AvgPool2d::extra_repr() const { return avg_repr(kernel_size, options); }

AvgPool3d::AvgPool3d(Triple kernel, const AvgPool3dOptions& o)
    : kernel_size(kernel), options(checked_options(o, kernel, "AvgPool3d")) {}
Tensor AvgPool3d::forward(const Tensor& x) const { return avg_pool3d(x, kernel_size, options); }
std::string AvgPool3d::extra_repr() const { return avg_repr(kernel_size, options); }

LPPool1d::LPPool1d(double norm_type, Single kernel_size, Single stride, bool ceil_mode)
    : norm_type(norm_type), kernel_size(kernel_size), stride(stride), ceil_mode(ceil_mode) {
  check_norm(norm_type, kernel_size, stride, "LPPool1d");
}
Tensor LPPool1d::forward(const Tensor& x) const {
  return lp_pool1d(x, norm_type, kernel_size, stride, ceil_mode);
}
std::string LPPool1d::extra_repr() const {
  return norm_repr(norm_type, kernel_size, stride, ceil_mode);
}

LPPool2d::LPPool2d(double norm_type, Pair kernel_size, Pair stride, bool ceil_mode)
    : norm_type(norm_type), kernel_size(kernel_size), stride(stride), ceil_mode(ceil_mode) {
  check_norm(norm_type, kernel_size, stride, "LPPool2d");
}
Tensor LPPool2d::forward(const Tensor& x) const {
  return lp_pool2d(x, norm_type, kernel_size, stride, ceil_mode);
}
std::string LPPool2d::extra_repr() const {
  return norm_repr(norm_type, kernel_size, stride, ceil_mode);
}

LPPool3d::LPPool3d(double norm_type, Triple kernel_size, Triple stride, bool ceil_mode)
    : norm_type(norm_type), kernel_size(kernel_size), stride(stride), ceil_mode(ceil_mode) {
  check_norm(norm_type, kernel_size, stride, "LPPool3d");
}
Tensor LPPool3d::forward(const Tensor& x) const {
  return lp_pool3d(x, norm_type, kernel_size, stride, ceil_mode);
}
std::string LPPool3d::extra_repr() const {
  return norm_repr(norm_type, kernel_size, stride, ceil_mode);
}

MaxUnpool1d::MaxUnpool1d(Single kernel, Single step, Single border)
    : kernel_size(kernel), stride(step.given() ? step : kernel), padding(border) {
  checked_options(MaxPool1dOptions{.stride = stride, .padding = padding}, kernel, "MaxUnpool1d");
}
Tensor MaxUnpool1d::forward(const Tensor& x, const Tensor& indices,
                            const Shape& output_size) const {
  return max_unpool1d(x, indices, kernel_size, stride, padding, output_size);
}
std::string MaxUnpool1d::extra_repr() const {
  return fmt::format("kernel_size={}, stride={}, padding={}", kernel_size.shape(), stride.shape(),
                     padding.shape());
}

MaxUnpool2d::MaxUnpool2d(Pair kernel, Pair step, Pair border)
    : kernel_size(kernel), stride(step.given() ? step : kernel), padding(border) {
  checked_options(MaxPool2dOptions{.stride = stride, .padding = padding}, kernel, "MaxUnpool2d");
}
Tensor MaxUnpool2d::forward(const Tensor& x, const Tensor& indices,
                            const Shape& output_size) const {
  return max_unpool2d(x, indices, kernel_size, stride, padding, output_size);
}
std::string MaxUnpool2d::extra_repr() const {
  return fmt::format("kernel_size={}, stride={}, padding={}", kernel_size.shape(), stride.shape(),
                     padding.shape());
}

MaxUnpool3d::MaxUnpool3d(Triple kernel, Triple step, Triple border)
    : kernel_size(kernel), stride(step.given() ? step : kernel), padding(border) {
  checked_options(MaxPool3dOptions{.stride = stride, .padding = padding}, kernel, "MaxUnpool3d");
}
Tensor MaxUnpool3d::forward(const Tensor& x, const Tensor& indices,
                            const Shape& output_size) const {
  return max_unpool3d(x, indices, kernel_size, stride, padding, output_size);
}
std::string MaxUnpool3d::extra_repr() const {
  return fmt::format("kernel_size={}, stride={}, padding={}", kernel_size.shape(), stride.shape(),
                     padding.shape());
}

AdaptiveAvgPool1d::AdaptiveAvgPool1d(Single size)
    : output_size(checked_output(size, "AdaptiveAvgPool1d")) {}
Tensor AdaptiveAvgPool1d::forward(const Tensor& x) const {
  return adaptive_avg_pool1d(x, output_size);
}
std::string AdaptiveAvgPool1d::extra_repr() const { return "output_size=" + repr(output_size); }

AdaptiveAvgPool2d::AdaptiveAvgPool2d(Pair size)
    : output_size(checked_output(size, "AdaptiveAvgPool2d")) {}
Tensor AdaptiveAvgPool2d::forward(const Tensor& x) const {
  return adaptive_avg_pool2d(x, output_size);
}
std::string AdaptiveAvgPool2d::extra_repr() const { return "output_size=" + repr(output_size); }

AdaptiveAvgPool3d::AdaptiveAvgPool3d(Triple size)
    : output_size(checked_output(size, "AdaptiveAvgPool3d")) {}
Tensor AdaptiveAvgPool3d::forward(const Tensor& x) const {
  return adaptive_avg_pool3d(x, output_size);
}
std::string AdaptiveAvgPool3d::extra_repr() const { return "output_size=" + repr(output_size); }

AdaptiveMaxPool1d::AdaptiveMaxPool1d(Single size)
    : output_size(checked_output(size, "AdaptiveMaxPool1d")) {}
Tensor AdaptiveMaxPool1d::forward(const Tensor& x) const {
  return adaptive_max_pool1d(x, output_size);
}
ValuesIndices AdaptiveMaxPool1d::forward_with_indices(const Tensor& x) const {
  return adaptive_max_pool1d_with_indices(x, output_size);
}
std::string AdaptiveMaxPool1d::extra_repr() const { return "output_size=" + repr(output_size); }

AdaptiveMaxPool2d::AdaptiveMaxPool2d(Pair size)
    : output_size(checked_output(size, "AdaptiveMaxPool2d")) {}
Tensor AdaptiveMaxPool2d::forward(const Tensor& x) const {
  return adaptive_max_pool2d(x, output_size);
}
ValuesIndices AdaptiveMaxPool2d::forward_with_indices(const Tensor& x) const {
  return adaptive_max_pool2d_with_indices(x, output_size);
}
std::string AdaptiveMaxPool2d::extra_repr() const { return "output_size=" + repr(output_size); }

AdaptiveMaxPool3d::AdaptiveMaxPool3d(Triple size)
    : output_size(checked_output(size, "AdaptiveMaxPool3d")) {}
Tensor AdaptiveMaxPool3d::forward(const Tensor& x) const {
  return adaptive_max_pool3d(x, output_size);
}
ValuesIndices AdaptiveMaxPool3d::forward_with_indices(const Tensor& x) const {
  return adaptive_max_pool3d_with_indices(x, output_size);
}
std::string AdaptiveMaxPool3d::extra_repr() const { return "output_size=" + repr(output_size); }

}  // namespace tenon::nn
