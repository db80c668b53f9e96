// Pooling (core/ops/pooling.h).
#include <tenon/core/format.h>
#include <tenon/core/ops/convolution/window.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/pooling.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

void require_planes(Infer& infer, const Shape& x) {
  if (x[2] == 0 || x[3] == 0)
    infer.shape_error(fmt::format("the planes of an input of shape {} are empty", x));
}

Shape pooled_shape(Infer& infer, bool dilated) {
  infer.require_dtype(is_floating_point(dtype_of(infer.in(0))), 0, "a floating type");
  const Shape& x = shape_of(infer.in(0));
  const Attrs& a = infer.attrs;
  Shape kernel = a.get_list("kernel_size"), stride = a.get_list("stride"),
        padding = a.get_list("padding");
  Shape dilation = dilated ? a.get_list("dilation") : Shape{1, 1}, result = x;
  require_planes(infer, x);
  require_addressable_padded(infer, x, padding);
  for (size_t d = 0; d < 2; ++d) {
    result[2 + d] = window_positions(x[2 + d], kernel[d], stride[d], padding[d], dilation[d],
                                     a.get_bool("ceil_mode"));
    if (result[2 + d] < 1)
      infer.shape_error(fmt::format(
          "a kernel of size {}{} is larger than the padded input: shape {}, padding {}", kernel,
          dilated ? fmt::format(" with dilation {}", dilation) : "", x, padding));
    if (a_window_misses(x[2 + d], kernel[d], stride[d], padding[d], dilation[d], result[2 + d]))
      infer.shape_error(
          fmt::format("a window lies on padding alone, where there is no value to take: kernel {}, "
                      "dilation {} and padding {} step over an input of shape {}; take a dilation "
                      "of at most its height and width",
                      kernel, dilation, padding, x));
  }
  return result;
}

// ---- max ----

// The forward pass has fixed the positions, so this operator is linear, and its gradient picks the
// same positions. The positions say everything, but it is given the windows as well: with them a
// device need not search for the windows that add to a pixel.
void max_pool2d_backward_gradient(const GradContext& c, Grads g) {
  if (!c.needs(0)) return;
  const Shape& from = c.grad().shape();
  const Shape& to = c.input_shape(0);
  Tensor planes = c.grad().reshape({from[0], from[1], from[2] * from[3]});
  Tensor positions = c.input(1).reshape({to[0], to[1], to[2] * to[3]});
  g[0] = gather(planes, 2, positions).reshape(to);
}
const Op max_pool2d_backward_op{{
    .name = "max_pool2d_backward",
    .infer = infer_given_shape,
    .gradient = max_pool2d_backward_gradient,
    .saves_inputs = 2,
}};

void infer_max_pool2d(Infer& infer) {
  Shape shape = pooled_shape(infer, true);
  infer.output(dtype_of(infer.in(0)), shape);
  infer.output(DType::i64, shape);
}
void max_pool2d_gradient(const GradContext& c, Grads g) {
  g[0] = run_as(c.input_shape(0), max_pool2d_backward_op, {&c.grad(), &c.output(1)}, c.attrs);
}
const Op max_pool2d_op{{
    .name = "max_pool2d",
    .infer = infer_max_pool2d,
    .gradient = max_pool2d_gradient,
    .saves_outputs = 2,
}};

// ---- average: linear, so the gradient of its gradient is the average again ----

Tensor average(const Tensor& x, const Attrs& attrs);

void avg_pool2d_backward_gradient(const GradContext& c, Grads g) {
  g[0] = average(c.grad(), c.attrs);
}
const Op avg_pool2d_backward_op{{
    .name = "avg_pool2d_backward",
    .infer = infer_given_shape,
    .gradient = avg_pool2d_backward_gradient,
}};

void infer_avg_pool2d(Infer& infer) {
  infer.output(dtype_of(infer.in(0)), pooled_shape(infer, false));
}
void avg_pool2d_gradient(const GradContext& c, Grads g) {
  g[0] = run_as(c.input_shape(0), avg_pool2d_backward_op, {&c.grad()}, c.attrs);
}
const Op avg_pool2d_op{{
    .name = "avg_pool2d",
    .infer = infer_avg_pool2d,
    .gradient = avg_pool2d_gradient,
}};

Tensor average(const Tensor& x, const Attrs& attrs) { return run(avg_pool2d_op, {&x}, attrs); }

// ---- average of windows that follow from the output's size ----

void adaptive_avg_pool2d_backward_gradient(const GradContext& c, Grads g) {
  const Shape& pooled = c.input_shape(0);
  g[0] = adaptive_avg_pool2d(c.grad(), {pooled[2], pooled[3]});
}
const Op adaptive_avg_pool2d_backward_op{{
    .name = "adaptive_avg_pool2d_backward",
    .infer = infer_given_shape,
    .gradient = adaptive_avg_pool2d_backward_gradient,
}};

void infer_adaptive_avg_pool2d(Infer& infer) {
  infer.require_dtype(is_floating_point(dtype_of(infer.in(0))), 0, "a floating type");
  Shape shape = shape_of(infer.in(0)), size = infer.attrs.get_list("output_size");
  require_planes(infer, shape);
  shape[2] = size[0];
  shape[3] = size[1];
  infer.output(dtype_of(infer.in(0)), shape);
}
void adaptive_avg_pool2d_gradient(const GradContext& c, Grads g) {
  g[0] = run_as(c.input_shape(0), adaptive_avg_pool2d_backward_op, {&c.grad()});
}
const Op adaptive_avg_pool2d_op{{
    .name = "adaptive_avg_pool2d",
    .infer = infer_adaptive_avg_pool2d,
    .gradient = adaptive_avg_pool2d_gradient,
    .core_attr = "output_size",
}};

// Checks the number of dimensions, and returns the input with a batch dimension.
Tensor batched(const char* op, const Tensor& x) {
  require_tensor(op, x);
  size_t rank = shape_of(x).size();
  if (rank == 3) return unsqueeze(x, 0);
  if (rank != 4)
    throw ShapeError(fmt::format("{}: needs an input (n, c, h, w) or (c, h, w), found shape {}", op,
                                 shape_of(x)));
  return x;
}

// Checks a window and returns its stride, which is the kernel's size unless another is given.
Pair check_window(const char* op, Pair kernel, Pair stride, Pair padding) {
  if (!stride.given()) stride = kernel;
  check_pair(op, "kernel", kernel, 1);
  check_pair(op, "stride", stride, 1);
  check_pair(op, "padding", padding, 0);
  if (padding.height > kernel.height / 2 || padding.width > kernel.width / 2)
    throw ValueError(fmt::format("{}: padding {} must be at most half the kernel's size {}", op,
                                 padding.shape(), kernel.shape()));
  return stride;
}

}  // namespace

Tensor max_pool2d(const Tensor& x, Pair kernel_size, const MaxPool2dOptions& options) {
  Pair stride = check_window("max_pool2d", kernel_size, options.stride, options.padding);
  check_pair("max_pool2d", "dilation", options.dilation, 1);
  Tensor input = batched("max_pool2d", x);
  Attrs attrs;
  attrs.set("kernel_size", kernel_size.shape())
      .set("stride", stride.shape())
      .set("padding", options.padding.shape())
      .set("dilation", options.dilation.shape())
      .set("ceil_mode", options.ceil_mode);
  const Tensor* inputs[] = {&input};
  Tensor y = run_all({max_pool2d_op, inputs, attrs, {}, wants_gradient(x) ? 3u : 1u})[0];
  return shape_of(x).size() == 3 ? squeeze(y, 0) : y;
}

Tensor avg_pool2d(const Tensor& x, Pair kernel_size, const AvgPool2dOptions& options) {
  Pair stride = check_window("avg_pool2d", kernel_size, options.stride, options.padding);
  Tensor input = batched("avg_pool2d", x);
  Attrs attrs;
  attrs.set("kernel_size", kernel_size.shape())
      .set("stride", stride.shape())
      .set("padding", options.padding.shape())
      .set("ceil_mode", options.ceil_mode)
      .set("count_include_pad", options.count_include_pad);
  Tensor y = run(avg_pool2d_op, {&input}, attrs);
  return shape_of(x).size() == 3 ? squeeze(y, 0) : y;
}

Tensor adaptive_avg_pool2d(const Tensor& x, Pair output_size) {
  check_pair("adaptive_avg_pool2d", "output_size", output_size, 0);
  Tensor input = batched("adaptive_avg_pool2d", x);
  Tensor y = run(adaptive_avg_pool2d_op, {&input}, Attrs().set("output_size", output_size.shape()));
  return shape_of(x).size() == 3 ? squeeze(y, 0) : y;
}

}  // namespace tenon
