// Transposed convolutions: the gradient of conv2d by its input, as functions of their own
// (core/ops/convolution.h). That operator's gradients are conv2d and its gradient by the weight.
#include <algorithm>

#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/extent.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/convolution/conv.h>
#include <tenon/core/ops/convolution/window.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>
#include <tenon/core/ops/shape/unfold.h>

namespace tenon {

namespace {

// A size along one dimension, or -1 where it is less than 1 or more than can be addressed.
int64_t transposed_size(int64_t size, int64_t kernel, int64_t stride, int64_t padding,
                        int64_t dilation, int64_t output_padding) {
  __extension__ using Wide = __int128;
  const Wide result = Wide{size - 1} * stride - 2 * Wide{padding} + Wide{dilation} * (kernel - 1) +
                      output_padding + 1;
  // The padding is part of the input of the convolution whose gradient this is.
  return result < 1 || result + 2 * Wide{padding} > kMaxNumel ? -1 : static_cast<int64_t>(result);
}

// The arguments of a transposed convolution, checked.
struct TransposedArguments {
  template <class Size>
  TransposedArguments(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                      const ConvTransposeOptions<Size>& o)
      : TransposedArguments(
            op, x, weight, bias,
            ConvWindows{o.stride.shape(), o.padding.shape(), o.dilation.shape(), o.groups},
            o.output_padding.shape()) {}
  TransposedArguments(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias,
                      const ConvWindows& windows, const Shape& output_padding);

  Tensor x;  // with a batch dimension
  ConvWindows windows;
  Shape output_padding;
  Shape shape;   // of the result, with a batch dimension
  bool batched;  // whether the input had one

  // Adds the bias, and gives the result the form of the input.
  Tensor result(const Tensor& y, const Tensor& bias) const {
    Shape column = Shape::filled(shape.size() - 1, 1);
    column[0] = shape[1];
    const Tensor sum = bias.defined() ? y + reshape(bias, column) : y;
    return batched ? sum : squeeze(sum, 0);
  }
};

void check_transposed_channels(const char* op, const Shape& x, const Shape& weight,
                               int64_t groups) {
  if (groups < 1)
    throw ValueError(fmt::format("{}: groups must be at least 1, found {}", op, groups));
  if (x[1] != weight[0])
    throw ShapeError(
        fmt::format("{}: an input of shape {} has {} channels, but a weight of shape {} takes {}",
                    op, x, x[1], weight, weight[0]));
  if (x[1] % groups != 0)
    throw ShapeError(
        fmt::format("{}: an input of shape {} has {} channels, which must be a multiple of "
                    "groups={}",
                    op, x, x[1], groups));
}

TransposedArguments::TransposedArguments(const char* op, const Tensor& input, const Tensor& weight,
                                         const Tensor& bias, const ConvWindows& w,
                                         const Shape& more)
    : windows(w), output_padding(more) {
  const size_t dims = more.size();
  batched = check_conv_tensors(op, input, weight, bias, dims, true);
  x = batched ? input : unsqueeze(input, 0);
  check_sizes(op, "stride", w.stride, 1);
  check_sizes(op, "padding", w.padding, 0);
  check_sizes(op, "dilation", w.dilation, 1);
  check_sizes(op, "output_padding", more, 0);
  const Shape &from = shape_of(x), &k = shape_of(weight);
  check_transposed_channels(op, from, k, w.groups);
  shape = from;
  if (__builtin_mul_overflow(k[1], w.groups, &shape[1])) shape[1] = kMaxNumel + 1;
  Shape padded = shape;
  for (size_t d = 0; d < dims; ++d) {
    if (more[d] >= std::max(w.stride[d], w.dilation[d]))
      throw ValueError(
          fmt::format("{}: output_padding {} must be smaller than the stride {} or the dilation {}",
                      op, more, w.stride, w.dilation));
    if (from[2 + d] < 1 || k[2 + d] < 1)
      throw ShapeError(
          fmt::format("{}: an input of shape {} and a weight of shape {} have an empty dimension",
                      op, from, k));
    shape[2 + d] =
        transposed_size(from[2 + d], k[2 + d], w.stride[d], w.padding[d], w.dilation[d], more[d]);
    if (shape[2 + d] < 1)
      throw ShapeError(fmt::format(
          "{}: the result would have no elements, or more than can be addressed, in dim {}: input "
          "{}, weight {}, stride {}, padding {}, dilation {}, output_padding {}",
          op, 2 + d, from, k, w.stride, w.padding, w.dilation, more));
    padded[2 + d] = shape[2 + d] + 2 * w.padding[d];
  }
  check_conv_bias(op, bias, shape[1], k);
  require_addressable(op, padded);
}

// Images, whose channels are those of the weight. `shape` is that of the result.
Tensor transposed_images(const Tensor& x, const Tensor& weight, const ConvWindows& windows,
                         const Shape& output_padding, const Shape& shape) {
  // What conv2d makes of `shape` has the size of x where output_padding is below the stride. More
  // of it, which a dilation allows, stands for windows whose elements are 0.
  const int64_t rows = output_padding[0] / windows.stride[0],
                columns = output_padding[1] / windows.stride[1];
  const Tensor whole = rows || columns ? pad(x, {0, columns, 0, rows}) : x;
  return run_conv2d_backward_input(whole, weight, windows.attrs(dtype_of(x)), shape);
}

}  // namespace

Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose1dOptions& options) try {
  if (const Autocasting cast{"conv_transpose1d", {&x, &weight, &bias}})
    return conv_transpose1d(cast(x), cast(weight), cast(bias), options);
  const TransposedArguments a("conv_transpose1d", x, weight, bias, options);
  const ConvWindows row{{1, a.windows.stride[0]},
                        {0, a.windows.padding[0]},
                        {1, a.windows.dilation[0]},
                        a.windows.groups};
  const Tensor y =
      transposed_images(unsqueeze(a.x, 2), unsqueeze(weight, 2), row, {0, a.output_padding[0]},
                        {a.shape[0], a.shape[1], 1, a.shape[2]});
  return a.result(squeeze(y, 2), bias);
} catch (const Error&) {
  rethrow_in("conv_transpose1d");
}

Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose2dOptions& options) try {
  if (const Autocasting cast{"conv_transpose2d", {&x, &weight, &bias}})
    return conv_transpose2d(cast(x), cast(weight), cast(bias), options);
  const TransposedArguments a("conv_transpose2d", x, weight, bias, options);
  return a.result(transposed_images(a.x, weight, a.windows, a.output_padding, a.shape), bias);
} catch (const Error&) {
  rethrow_in("conv_transpose2d");
}

// Each plane of x is an image that adds to kd planes of the result, which are channels at first.
Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose3dOptions& options) try {
  if (const Autocasting cast{"conv_transpose3d", {&x, &weight, &bias}})
    return conv_transpose3d(cast(x), cast(weight), cast(bias), options);
  const TransposedArguments a("conv_transpose3d", x, weight, bias, options);
  const ConvWindows& w = a.windows;
  const Shape &s = shape_of(a.x), &k = shape_of(weight), &result = a.shape;
  if (w.along_depth(k) && a.output_padding[1] == 0 && a.output_padding[2] == 0) {
    const int64_t columns = s[3] * s[4];
    const Tensor y = transposed_images(
        reshape(a.x, {s[0], s[1], s[2], columns}), reshape(weight, {k[0], k[1], k[2], 1}),
        w.of_depth(), {a.output_padding[0], 0}, {result[0], result[1], result[2], columns});
    return a.result(reshape(y, result), bias);
  }
  // Images in half types would be rounded before they are added up.
  if (const DType type = dtype_of(x); is_half(type))
    return conv_transpose3d(x.to(f32), weight.to(f32), bias.defined() ? bias.to(f32) : bias,
                            options)
        .to(type);
  require_addressable("conv_transpose3d: the images of all planes",
                      {s[0], s[2], result[1], k[2], result[3], result[4]});
  const ConvWindows of_images{{w.stride[1], w.stride[2]},
                              {w.padding[1], w.padding[2]},
                              {w.dilation[1], w.dilation[2]},
                              w.groups};
  const Tensor images = reshape(transpose(a.x, 1, 2), {s[0] * s[2], s[1], s[3], s[4]}),
               kernel = reshape(weight, {k[0], k[1] * k[2], k[3], k[4]});
  const Tensor y =
      transposed_images(images, kernel, of_images, {a.output_padding[1], a.output_padding[2]},
                        {s[0] * s[2], result[1] * k[2], result[3], result[4]});
  const Tensor parts =
      permute(reshape(y, {s[0], s[2], result[1], k[2], result[3], result[4]}), {0, 2, 1, 4, 5, 3});
  const int64_t whole = (s[2] - 1) * w.stride[0] + w.dilation[0] * (k[2] - 1) + 1;
  Tensor planes = fold_dim(parts, {s[0], result[1], whole, result[3], result[4]}, 2, w.stride[0],
                           w.dilation[0]);
  const int64_t cut = w.padding[0], missing = cut + result[2] - whole;
  if (missing > 0) planes = pad(planes, {0, 0, 0, 0, 0, missing});
  return a.result(contiguous(narrow(planes, 2, cut, result[2])), bias);
} catch (const Error&) {
  rethrow_in("conv_transpose3d");
}

}  // namespace tenon
