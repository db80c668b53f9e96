#include <cmath>

#include <tenon/core/format.h>
#include <tenon/modules/conv.h>
#include <tenon/modules/init.h>
#include <tenon/modules/repr.h>

namespace tenon::nn {

Conv2d::Conv2d(int64_t in, int64_t out, Pair kernel, const WeightOptions& weights)
    : Conv2d(in, out, kernel, {}, weights) {}

Conv2d::Conv2d(int64_t in, int64_t out, Pair kernel, const Conv2dOptions& o,
               const WeightOptions& weights)
    : in_channels(in), out_channels(out), kernel_size(kernel), options(o) {
  require(o.groups > 0, "Conv2d", "groups", static_cast<double>(o.groups), "at least 1");
  require(in >= 0 && in % o.groups == 0, "Conv2d", "in_channels", static_cast<double>(in),
          "a multiple of groups");
  require(out >= 0 && out % o.groups == 0, "Conv2d", "out_channels", static_cast<double>(out),
          "a multiple of groups");
  require_size(kernel, 1, "Conv2d", "kernel_size");
  require_size(o.stride, 1, "Conv2d", "stride");
  require_size(o.padding, 0, "Conv2d", "padding");
  require_size(o.dilation, 1, "Conv2d", "dilation");
  double fan_in = static_cast<double>(in / o.groups) * static_cast<double>(kernel.height) *
                  static_cast<double>(kernel.width);
  double bound = fan_in > 0 ? 1 / std::sqrt(fan_in) : 0;
  weight = Parameter(init::uniform_(
      empty({out, in / o.groups, kernel.height, kernel.width}, weights.tensor), -bound, bound));
  if (weights.bias) bias = Parameter(init::uniform_(empty({out}, weights.tensor), -bound, bound));
}

Tensor Conv2d::forward(const Tensor& x) const { return conv2d(x, weight, bias, options); }

void Conv2d::fields(FieldVisitor& v) { v("weight", weight)("bias", bias); }

std::string Conv2d::extra_repr() const {
  std::string text = fmt::format("{}, {}, kernel_size={}, stride={}", in_channels, out_channels,
                                 kernel_size.shape(), options.stride.shape());
  if (!options.padding.is(0)) text += fmt::format(", padding={}", options.padding.shape());
  if (!options.dilation.is(1)) text += fmt::format(", dilation={}", options.dilation.shape());
  if (options.groups != 1) text += fmt::format(", groups={}", options.groups);
  if (!bias.defined()) text += ", bias=False";
  return text;
}

}  // namespace tenon::nn
