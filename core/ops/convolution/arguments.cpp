// The arguments of convolutions, checked and brought into the form of the operators of images.
#include <algorithm>
#include <limits>

#include <tenon/core/base/module_path.h>
#include <tenon/core/extent.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/convolution/conv.h>
#include <tenon/core/ops/convolution/window.h>
#include <tenon/core/ops/linalg/precision.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>
#include <tenon/plugins/abi/windows.h>

namespace tenon {

namespace {

constexpr const char* kForms[] = {"(n, c, l) or (c, l)", "(n, c, h, w) or (c, h, w)",
                                  "(n, c, d, h, w) or (c, d, h, w)"};
constexpr const char* kKernels[] = {"k", "kh, kw", "kd, kh, kw"};

// What pad() takes: the last dimension first.
std::vector<int64_t> pad_sizes(const Shape& before, const Shape& after) {
  std::vector<int64_t> sizes;
  for (size_t d = before.size(); d-- > 0;) {
    sizes.push_back(before[d]);
    sizes.push_back(after[d]);
  }
  return sizes;
}

// What "same" adds to each dimension, in front and behind together.
Shape same_padding(const char* op, const Shape& weight, const Shape& stride,
                   const Shape& dilation) {
  for (const int64_t s : stride)
    if (s != 1)
      throw ValueError(fmt::format(
          "{}: padding \"same\" needs a stride of 1, found {}; give the padding in numbers", op,
          stride));
  Shape total = dilation;
  for (size_t d = 0; d < total.size(); ++d) {
    const int64_t gaps = std::max<int64_t>(weight[2 + d] - 1, 0);
    if (gaps > std::numeric_limits<int32_t>::max() / dilation[d])
      throw ValueError(
          fmt::format("{}: padding \"same\" for a weight of shape {} with dilation {} adds more "
                      "than 2^31 - 1 elements",
                      op, weight, dilation));
    total[d] = gaps * dilation[d];
  }
  return total;
}

bool pads_with_zeros(const char* op, const std::string& mode) {
  if (mode == "zeros") return true;
  if (mode == "reflect" || mode == "replicate" || mode == "circular") return false;
  throw ValueError(
      fmt::format("{}: padding_mode must be \"zeros\", \"reflect\", \"replicate\" or \"circular\", "
                  "found \"{}\"",
                  op, mode));
}

}  // namespace

const char* detail::padding_word(std::string_view word) {
  if (word == "same") return "same";
  if (word == "valid") return "valid";
  throw ValueError(fmt::format(
      "convolution: padding must be numbers, \"same\" or \"valid\", found \"{}\"", word));
}

Attrs ConvWindows::attrs(DType dtype) const {
  Attrs attrs;
  attrs.set("stride", stride)
      .set("padding", padding)
      .set("dilation", dilation)
      .set("groups", groups);
  add_precision(dtype, attrs);
  return attrs;
}

bool check_conv_tensors(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                        size_t dims, bool transposed) {
  require_tensor(op, x);
  require_tensor(op, weight, "weight");
  const size_t rank = shape_of(x).size();
  if ((rank != dims + 2 && rank != dims + 1) || shape_of(weight).size() != dims + 2)
    throw ShapeError(fmt::format("{}: needs an input {} and a weight ({}, {}); found {} and {}", op,
                                 kForms[dims - 1], transposed ? "c, o/groups" : "o, c/groups",
                                 kKernels[dims - 1], shape_of(x), shape_of(weight)));
  require_one_dtype(op, x, weight, bias);
  if (!is_floating_point(dtype_of(x)))
    throw DTypeError(fmt::format("{}: x has dtype {}, but must be a floating type; {}", op,
                                 dtype_of(x), conversion_to(DType::f32)));
  return rank == dims + 2;
}

void check_conv_bias(const char* op, const Tensor& bias, int64_t channels, const Shape& weight) {
  if (bias.defined() && !(shape_of(bias) == Shape{channels}))
    throw ShapeError(
        fmt::format("{}: bias has shape {}, but must be ({},) for a weight of shape {}", op,
                    shape_of(bias), channels, weight));
}

Shape convolved_shape(const char* op, const Shape& x, const Shape& weight,
                      const ConvWindows& windows) {
  const auto refuse = [op](const std::string& message) {
    throw ShapeError(fmt::format("{}: {}{}", op, message, path_suffix()));
  };
  const int64_t groups = windows.groups;
  if (groups < 1) refuse(fmt::format("groups must be at least 1, found {}", groups));
  if (weight[0] % groups != 0)
    refuse(fmt::format(
        "a weight of shape {} has {} output channels, which must be a multiple of groups={}",
        weight, weight[0], groups));
  if (x[1] % groups != 0 || x[1] / groups != weight[1])
    refuse(fmt::format("an input of shape {} has {} channels, but a weight of shape {}{} takes {}",
                       x, x[1], weight, groups == 1 ? "" : fmt::format(" with groups={}", groups),
                       weight[1] * groups));
  Shape result = x;
  result[1] = weight[0];
  for (size_t d = 2; d < x.size(); ++d) {
    result[d] = tn_window_positions(x[d], weight[d], windows.stride[d - 2], windows.padding[d - 2],
                                    windows.dilation[d - 2], 0);
    if (weight[d] < 1 || result[d] < 1)
      refuse(
          fmt::format("the kernel of a weight of shape {} (with dilation {}) is larger than the "
                      "padded input: shape {}, padding {}",
                      weight, windows.dilation, x, windows.padding));
  }
  return result;
}

ConvArguments::ConvArguments(const char* op, const Tensor& input, const Tensor& weight,
                             const Tensor& bias, const Shape& stride, const Shape& padding,
                             const char* word, const Shape& dilation, int64_t groups,
                             const std::string& padding_mode)
    : windows{stride, padding, dilation, groups} {
  const size_t dims = stride.size();
  batched = check_conv_tensors(op, input, weight, bias, dims);
  check_sizes(op, "stride", stride, 1);
  check_sizes(op, "padding", padding, 0);
  check_sizes(op, "dilation", dilation, 1);
  if (groups < 1)
    throw ValueError(fmt::format("{}: groups must be at least 1, found {}", op, groups));
  check_conv_bias(op, bias, shape_of(weight)[0], shape_of(weight));
  const bool zeros = pads_with_zeros(op, padding_mode);
  x = batched ? input : unsqueeze(input, 0);
  // What each dimension gets behind; the windows themselves add the same number in front.
  Shape after = padding;
  if (word && std::string_view(word) == "same") {
    after = same_padding(op, shape_of(weight), stride, dilation);
    for (size_t d = 0; d < dims; ++d) {
      windows.padding[d] = after[d] / 2;
      after[d] -= windows.padding[d];
    }
  }
  const Shape none = Shape::filled(dims, 0);
  if (!zeros && !(after == none)) {
    x = pad(x, pad_sizes(windows.padding, after), padding_mode);
    windows.padding = none;
  } else if (!(after == windows.padding)) {
    for (size_t d = 0; d < dims; ++d) after[d] -= windows.padding[d];
    x = pad(x, pad_sizes(none, after));
  }
}

Tensor ConvArguments::result(const Tensor& y) const { return batched ? y : squeeze(y, 0); }

}  // namespace tenon
