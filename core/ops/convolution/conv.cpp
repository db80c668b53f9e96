// conv2d and its two gradients, which are bilinear, so that the gradients of each are made of the
// other two; conv1d and conv3d by conv2d (core/ops/convolution.h).
#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/extent.h>
#include <tenon/core/ops/convolution/conv.h>
#include <tenon/core/ops/convolution/window.h>
#include <tenon/core/ops/pointwise/finish.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>
#include <tenon/core/ops/shape/unfold.h>

namespace tenon {

namespace {

// All three have the attributes of conv2d.
Tensor convolve(const Tensor& x, const Tensor& weight, const Attrs& attrs);
Tensor backward_input(const Tensor& gradient, const Tensor& weight, const Attrs& attrs,
                      const Shape& shape, MemoryFormat format = preserve_format);
Tensor backward_weight(const Tensor& gradient, const Tensor& x, const Attrs& attrs,
                       const Shape& shape, MemoryFormat format);

// The gradient of input i of an operator, in the format of that input.
Tensor input_gradient(const GradContext& c, const Tensor& gradient, const Tensor& weight,
                      size_t i) {
  return backward_input(gradient, weight, c.attrs, c.input_shape(i), c.input_format(i));
}
Tensor weight_gradient(const GradContext& c, const Tensor& gradient, const Tensor& x, size_t i) {
  return backward_weight(gradient, x, c.attrs, c.input_shape(i), c.input_format(i));
}

void infer_conv2d(Infer& infer) {
  require_activation(infer);
  DType t = dtype_of(infer.in(0));
  infer.require_dtype(is_floating_point(t), 0, "a floating type");
  const Shape &x = shape_of(infer.in(0)), &weight = shape_of(infer.in(1));
  const ConvWindows windows{infer.attrs.get_list("stride"), infer.attrs.get_list("padding"),
                            infer.attrs.get_list("dilation"), infer.attrs.get_int("groups")};
  require_bias(infer, weight);
  const Shape result = convolved_shape(infer.op.name, x, weight, windows);
  require_addressable_padded(infer, x, windows.padding);
  infer.output(t, result);
  require_residual(infer);
}
void conv2d_gradient(const GradContext& c, Grads g) {
  if (c.needs(0)) g[0] = input_gradient(c, c.grad(), c.input(1), 0);
  if (c.needs(1)) g[1] = weight_gradient(c, c.grad(), c.input(0), 1);
  if (c.needs(2)) g[2] = sum(c.grad(), {0, 2, 3});
}
// | `conv2d` | x(n,c,h,w), weight(o,c/groups,kh,kw), bias(o)?, residual? -> y | `stride padding
//   dilation` two ints each, `groups`; `residual` and `activation` as matmul | |
const Op conv2d_op{{
    .name = "conv2d",
    .inputs = "x weight bias",
    .infer = infer_conv2d,
    .gradient = conv2d_gradient,
    .saves_inputs = 3,
    .keeps_format = 3,
    .autocast = AutocastRule::lower,
    .count_scalars = count_activation_scalars,
}};

void conv2d_backward_input_gradient(const GradContext& c, Grads g) {
  if (c.needs(0)) g[0] = convolve(c.grad(), c.input(1), c.attrs);
  if (c.needs(1)) g[1] = weight_gradient(c, c.input(0), c.grad(), 1);
}
// | `conv2d_backward_input` | g, weight -> gx | as conv2d, neither `residual` nor `activation` |
//   also the transposed convolution |
const Op conv2d_backward_input_op{{
    .name = "conv2d_backward_input",
    .infer = infer_given_shape,
    .gradient = conv2d_backward_input_gradient,
    .saves_inputs = 3,
    .keeps_format = 3,
}};

void conv2d_backward_weight_gradient(const GradContext& c, Grads g) {
  if (c.needs(0)) g[0] = convolve(c.input(1), c.grad(), c.attrs);
  if (c.needs(1)) g[1] = input_gradient(c, c.input(0), c.grad(), 1);
}
// | `conv2d_backward_weight` | g, x -> gweight | as `conv2d_backward_input` | |
const Op conv2d_backward_weight_op{{
    .name = "conv2d_backward_weight",
    .infer = infer_given_shape,
    .gradient = conv2d_backward_weight_gradient,
    .saves_inputs = 3,
}};

Tensor convolve(const Tensor& x, const Tensor& weight, const Attrs& attrs) {
  return run(conv2d_op, {&x, &weight, nullptr}, attrs);
}
Tensor backward_input(const Tensor& gradient, const Tensor& weight, const Attrs& attrs,
                      const Shape& shape, MemoryFormat format) {
  return run_as(shape, conv2d_backward_input_op, {&gradient, &weight}, attrs, format);
}
Tensor backward_weight(const Tensor& gradient, const Tensor& x, const Attrs& attrs,
                       const Shape& shape, MemoryFormat format) {
  return run_as(shape, conv2d_backward_weight_op, {&gradient, &x}, attrs, format);
}

}  // namespace

Tensor run_conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Attrs& attrs) {
  return run(conv2d_op, {&x, &weight, bias.defined() ? &bias : nullptr}, attrs);
}
Tensor run_conv2d_backward_input(const Tensor& gradient, const Tensor& weight, const Attrs& attrs,
                                 const Shape& shape) {
  return backward_input(gradient, weight, attrs, shape);
}

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Conv1dOptions& options) try {
  if (const Autocasting cast{"conv1d", {&x, &weight, &bias}})
    return conv1d(cast(x), cast(weight), cast(bias), options);
  ConvArguments a("conv1d", x, weight, bias, options);
  // A refusal names the shapes that the caller knows; that of conv2d would name those of an image.
  convolved_shape("conv1d", shape_of(a.x), shape_of(weight), a.windows);
  // An image of one row.
  a.windows = {{1, a.windows.stride[0]},
               {0, a.windows.padding[0]},
               {1, a.windows.dilation[0]},
               a.windows.groups};
  const Tensor row = unsqueeze(a.x, 2), kernel = unsqueeze(weight, 2);
  return a.result(squeeze(run_conv2d(row, kernel, bias, a.windows.attrs(dtype_of(x))), 2));
} catch (const Error&) {
  rethrow_in("conv1d");
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Conv2dOptions& options) {
  if (const Autocasting cast{"conv2d", {&x, &weight, &bias}})
    return conv2d(cast(x), cast(weight), cast(bias), options);
  const ConvArguments a("conv2d", x, weight, bias, options);
  return a.result(run_conv2d(a.x, weight, bias, a.windows.attrs(dtype_of(x))));
}

// The planes that a window touches are channels of one image, so that all windows along the depth
// are a batch of images. The channels of a group stay together.
Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Conv3dOptions& options) try {
  if (const Autocasting cast{"conv3d", {&x, &weight, &bias}})
    return conv3d(cast(x), cast(weight), cast(bias), options);
  ConvArguments a("conv3d", x, weight, bias, options);
  const ConvWindows& windows = a.windows;
  const Shape &k = shape_of(weight), result = convolved_shape("conv3d", shape_of(a.x), k, windows);
  if (windows.along_depth(k)) {
    const Shape& v = shape_of(a.x);
    const Tensor y = run_conv2d(reshape(a.x, {v[0], v[1], v[2], v[3] * v[4]}),
                                reshape(weight, {k[0], k[1], k[2], 1}), bias,
                                windows.of_depth().attrs(dtype_of(x)));
    return a.result(reshape(y, result));
  }
  const int64_t before = windows.padding[0];
  const Tensor padded = before ? pad(a.x, {0, 0, 0, 0, before, before}) : a.x;
  const Shape& s = shape_of(padded);
  require_addressable("conv3d: the windows along the depth",
                      {s[0], result[2], s[1], k[2], s[3], s[4]});
  const Tensor parts = unfold_dim(padded, 2, k[2], windows.stride[0], windows.dilation[0]);
  const Tensor images =
      reshape(permute(parts, {0, 2, 1, 5, 3, 4}), {s[0] * result[2], s[1] * k[2], s[3], s[4]});
  a.windows = {{windows.stride[1], windows.stride[2]},
               {windows.padding[1], windows.padding[2]},
               {windows.dilation[1], windows.dilation[2]},
               windows.groups};
  const Tensor y = run_conv2d(images, reshape(weight, {k[0], k[1] * k[2], k[3], k[4]}), bias,
                              a.windows.attrs(dtype_of(x)));
  const Tensor planes = reshape(y, {s[0], result[2], k[0], result[3], result[4]});
  return a.result(contiguous(transpose(planes, 1, 2)));
} catch (const Error&) {
  rethrow_in("conv3d");
}

}  // namespace tenon
