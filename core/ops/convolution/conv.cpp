// conv2d and its two gradients (core/ops/convolution.h). All three are bilinear, so the gradients
// of each are made of the other two.
#include <tenon/core/format.h>
#include <tenon/core/ops/convolution.h>
#include <tenon/core/ops/convolution/window.h>
#include <tenon/core/ops/linalg/precision.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

// All three have the attributes of conv2d.
Tensor convolve(const Tensor& x, const Tensor& weight, const Attrs& attrs);
Tensor backward_input(const Tensor& gradient, const Tensor& weight, const Attrs& attrs,
                      const Shape& shape);
Tensor backward_weight(const Tensor& gradient, const Tensor& x, const Attrs& attrs,
                       const Shape& shape);

void infer_conv2d(Infer& infer) {
  DType t = dtype_of(infer.in(0));
  infer.require_dtype(is_floating_point(t), 0, "a floating type");
  const Shape &x = shape_of(infer.in(0)), &weight = shape_of(infer.in(1));
  Shape stride = infer.attrs.get_list("stride"), padding = infer.attrs.get_list("padding"),
        dilation = infer.attrs.get_list("dilation");
  int64_t groups = infer.attrs.get_int("groups");
  if (weight[0] % groups != 0)
    infer.shape_error(fmt::format(
        "a weight of shape {} has {} output channels, which must be a multiple of groups={}",
        weight, weight[0], groups));
  if (x[1] % groups != 0 || x[1] / groups != weight[1])
    infer.shape_error(fmt::format(
        "an input of shape {} has {} channels, but a weight of shape {}{} takes {}", x, x[1],
        weight, groups == 1 ? "" : fmt::format(" with groups={}", groups), weight[1] * groups));
  require_bias(infer, weight);
  require_addressable_padded(infer, x, padding);
  Shape result = {x[0], weight[0], 0, 0};
  for (size_t d = 0; d < 2; ++d) {
    result[2 + d] = window_positions(x[2 + d], weight[2 + d], stride[d], padding[d], dilation[d]);
    if (weight[2 + d] < 1 || result[2 + d] < 1)
      infer.shape_error(
          fmt::format("the kernel of a weight of shape {} (with dilation {}) is larger than the "
                      "padded input: shape {}, padding {}",
                      weight, dilation, x, padding));
  }
  infer.output(t, result);
}
void conv2d_gradient(const GradContext& c, Grads g) {
  if (c.needs(0)) g[0] = backward_input(c.grad(), c.input(1), c.attrs, c.input_shape(0));
  if (c.needs(1)) g[1] = backward_weight(c.grad(), c.input(0), c.attrs, c.input_shape(1));
  if (c.needs(2)) g[2] = sum(c.grad(), {0, 2, 3});
}
const Op conv2d_op{{
    .name = "conv2d",
    .infer = infer_conv2d,
    .gradient = conv2d_gradient,
    .saves_inputs = 3,
}};

void conv2d_backward_input_gradient(const GradContext& c, Grads g) {
  if (c.needs(0)) g[0] = convolve(c.grad(), c.input(1), c.attrs);
  if (c.needs(1)) g[1] = backward_weight(c.input(0), c.grad(), c.attrs, c.input_shape(1));
}
const Op conv2d_backward_input_op{{
    .name = "conv2d_backward_input",
    .infer = infer_given_shape,
    .gradient = conv2d_backward_input_gradient,
    .saves_inputs = 3,
}};

void conv2d_backward_weight_gradient(const GradContext& c, Grads g) {
  if (c.needs(0)) g[0] = convolve(c.input(1), c.grad(), c.attrs);
  if (c.needs(1)) g[1] = backward_input(c.input(0), c.grad(), c.attrs, c.input_shape(1));
}
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
                      const Shape& shape) {
  return run_as(shape, conv2d_backward_input_op, {&gradient, &weight}, attrs);
}
Tensor backward_weight(const Tensor& gradient, const Tensor& x, const Attrs& attrs,
                       const Shape& shape) {
  return run_as(shape, conv2d_backward_weight_op, {&gradient, &x}, attrs);
}

}  // namespace

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Conv2dOptions& options) {
  require_tensor("conv2d", x, 0);
  require_tensor("conv2d", weight, 1);
  const Tensor* b = bias.defined() ? &bias : nullptr;
  check_pair("conv2d", "stride", options.stride, 1);
  check_pair("conv2d", "padding", options.padding, 0);
  check_pair("conv2d", "dilation", options.dilation, 1);
  if (options.groups < 1)
    throw ValueError(fmt::format("conv2d: groups must be at least 1, found {}", options.groups));
  size_t rank = shape_of(x).size();
  if ((rank != 4 && rank != 3) || shape_of(weight).size() != 4)
    throw ShapeError(
        fmt::format("conv2d: needs an input (n, c, h, w) or (c, h, w) and a weight (o, c/groups, "
                    "kh, kw); found {} and {}",
                    shape_of(x), shape_of(weight)));
  require_one_dtype("conv2d", x, weight, bias);
  Attrs attrs;
  attrs.set("stride", options.stride.shape())
      .set("padding", options.padding.shape())
      .set("dilation", options.dilation.shape())
      .set("groups", options.groups);
  add_precision(dtype_of(x), attrs);
  if (rank == 4) return run(conv2d_op, {&x, &weight, b}, attrs);
  Tensor batch = unsqueeze(x, 0);
  return squeeze(run(conv2d_op, {&batch, &weight, b}, attrs), 0);
}

}  // namespace tenon
