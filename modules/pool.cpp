#include <tenon/core/format.h>
#include <tenon/modules/pool.h>
#include <tenon/modules/repr.h>

namespace tenon::nn {

MaxPool2d::MaxPool2d(Pair kernel, const MaxPool2dOptions& o) : kernel_size(kernel), options(o) {
  if (!options.stride.given()) options.stride = kernel;
  require_size(kernel, 1, "MaxPool2d", "kernel_size");
  require_size(options.stride, 1, "MaxPool2d", "stride");
  require_size(o.padding, 0, "MaxPool2d", "padding");
  require_size(o.dilation, 1, "MaxPool2d", "dilation");
}

Tensor MaxPool2d::forward(const Tensor& x) const { return max_pool2d(x, kernel_size, options); }

std::string MaxPool2d::extra_repr() const {
  return fmt::format("kernel_size={}, stride={}, padding={}, dilation={}, ceil_mode={}",
                     repr(kernel_size), repr(options.stride), repr(options.padding),
                     repr(options.dilation), repr(options.ceil_mode));
}

AvgPool2d::AvgPool2d(Pair kernel, const AvgPool2dOptions& o) : kernel_size(kernel), options(o) {
  if (!options.stride.given()) options.stride = kernel;
  require_size(kernel, 1, "AvgPool2d", "kernel_size");
  require_size(options.stride, 1, "AvgPool2d", "stride");
  require_size(o.padding, 0, "AvgPool2d", "padding");
}

Tensor AvgPool2d::forward(const Tensor& x) const { return avg_pool2d(x, kernel_size, options); }

std::string AvgPool2d::extra_repr() const {
  return fmt::format("kernel_size={}, stride={}, padding={}", repr(kernel_size),
                     repr(options.stride), repr(options.padding));
}

AdaptiveAvgPool2d::AdaptiveAvgPool2d(Pair size) : output_size(size) {
  require_size(size, 1, "AdaptiveAvgPool2d", "output_size");
}

Tensor AdaptiveAvgPool2d::forward(const Tensor& x) const {
  return adaptive_avg_pool2d(x, output_size);
}

std::string AdaptiveAvgPool2d::extra_repr() const { return "output_size=" + repr(output_size); }

}  // namespace tenon::nn
