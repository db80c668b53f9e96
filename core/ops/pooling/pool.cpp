#include <tenon/core/ops/convolution/window.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/pooling.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

using Grads = std::span<Tensor>;

Shape pooled_shape(Infer& infer, bool dilated) {
  infer.require_dtype(is_floating_point(dtype_of(infer.in(0))), 0, "a floating type");
  const Shape& x = shape_of(infer.in(0));
  const Attrs& a = infer.attrs;
  Shape kernel = a.get_list("kernel_size"), stride = a.get_list("stride"),
        padding = a.get_list("padding");
  Shape dilation = dilated ? a.get_list("dilation") : Shape{1, 1}, result = x;
  if (x[2] == 0 || x[3] == 0)
    infer.shape_error("the planes of an input of shape " + x.str() + " are empty");
  require_addressable_padded(infer, x, padding);
  for (size_t d = 0; d < 2; ++d) {
    result[2 + d] = window_positions(x[2 + d], kernel[d], stride[d], padding[d], dilation[d],
                                     a.get_bool("ceil_mode"));
    if (result[2 + d] < 1)
      infer.shape_error(
          "a kernel of size " + kernel.str() + (dilated ? " with dilation " + dilation.str() : "") +
          " is larger than the padded input: shape " + x.str() + ", padding " + padding.str());
    if (a_window_misses(x[2 + d], kernel[d], stride[d], padding[d], dilation[d], result[2 + d]))
      infer.shape_error("a window lies on padding alone, where there is no value to take: kernel " +
                        kernel.str() + ", dilation " + dilation.str() + " and padding " +
                        padding.str() + " step over an input of shape " + x.str() +
                        "; take a dilation of at most its height and width");
  }
  return result;
}

// ---- max ----

// Positions are fixed by the forward pass, so this is linear, and its gradient picks the same
// positions. It is told of the windows although positions say it all: with them a device need not
// look for who else adds to a pixel.
const Op max_pool2d_backward_op{
    {.name = "max_pool2d_backward",
     .infer = infer_given_shape,
     .gradient =
         [](const GradContext& c, Grads g) {
           if (!c.needs(0)) return;
           const Shape& from = c.grad().shape();
           const Shape& to = c.input_shape(0);
           Tensor planes = c.grad().reshape({from[0], from[1], from[2] * from[3]});
           Tensor positions = c.input(1).reshape({to[0], to[1], to[2] * to[3]});
           g[0] = gather(planes, 2, positions).reshape(to);
         },
     .saves_inputs = 2}};

const Op max_pool2d_op{{.name = "max_pool2d",
                        .infer =
                            [](Infer& infer) {
                              Shape shape = pooled_shape(infer, true);
                              infer.output(dtype_of(infer.in(0)), shape);
                              infer.output(DType::i64, shape);
                            },
                        .gradient =
                            [](const GradContext& c, Grads g) {
                              g[0] = run_as(c.input_shape(0), max_pool2d_backward_op,
                                            {&c.grad(), &c.output(1)}, c.attrs);
                            },
                        .saves_outputs = 2}};

// ---- average: linear, so its gradient and that one's gradient are each other ----

Tensor average(const Tensor& x, const Attrs& attrs);

const Op avg_pool2d_backward_op{
    {.name = "avg_pool2d_backward",
     .infer = infer_given_shape,
     .gradient = [](const GradContext& c, Grads g) { g[0] = average(c.grad(), c.attrs); }}};

const Op avg_pool2d_op{
    {.name = "avg_pool2d",
     .infer = [](Infer& infer) { infer.output(dtype_of(infer.in(0)), pooled_shape(infer, false)); },
     .gradient =
         [](const GradContext& c, Grads g) {
           g[0] = run_as(c.input_shape(0), avg_pool2d_backward_op, {&c.grad()}, c.attrs);
         }}};

Tensor average(const Tensor& x, const Attrs& attrs) { return run(avg_pool2d_op, {&x}, attrs); }

const Op adaptive_avg_pool2d_backward_op{
    {.name = "adaptive_avg_pool2d_backward",
     .infer = infer_given_shape,
     .gradient = [](const GradContext& c, Grads g) {
       g[0] = adaptive_avg_pool2d(c.grad(), Shape{c.input_shape(0)[2], c.input_shape(0)[3]});
     }}};

const Op adaptive_avg_pool2d_op{
    {.name = "adaptive_avg_pool2d",
     .infer =
         [](Infer& infer) {
           infer.require_dtype(is_floating_point(dtype_of(infer.in(0))), 0, "a floating type");
           Shape shape = shape_of(infer.in(0)), size = infer.attrs.get_list("output_size");
           if (shape[2] == 0 || shape[3] == 0)
             infer.shape_error("the planes of an input of shape " + shape.str() + " are empty");
           shape[2] = size[0];
           shape[3] = size[1];
           infer.output(dtype_of(infer.in(0)), shape);
         },
     .gradient =
         [](const GradContext& c, Grads g) {
           g[0] = run_as(c.input_shape(0), adaptive_avg_pool2d_backward_op, {&c.grad()});
         }}};

// Checks, and an input with a batch dimension.
Tensor batched(const char* op, const Tensor& x) {
  require_tensor(op, x);
  size_t rank = shape_of(x).size();
  if (rank == 3) return unsqueeze(x, 0);
  if (rank != 4)
    throw ShapeError(std::string(op) + ": needs an input (n, c, h, w) or (c, h, w), found shape " +
                     shape_of(x).str());
  return x;
}

Shape check_window(const char* op, const Shape& kernel, const Pool2dOptions& options) {
  Shape stride = options.stride.empty() ? kernel : options.stride;
  check_pair(op, "kernel", kernel, 1);
  check_pair(op, "stride", stride, 1);
  check_pair(op, "padding", options.padding, 0);
  check_pair(op, "dilation", options.dilation, 1);
  for (size_t d = 0; d < 2; ++d)
    if (options.padding[d] > kernel[d] / 2)
      throw ValueError(std::string(op) + ": padding " + options.padding.str() +
                       " must be at most half the kernel's size " + kernel.str());
  return stride;
}

}  // namespace

Tensor max_pool2d(const Tensor& x, const Shape& kernel, const Pool2dOptions& options) {
  Shape stride = check_window("max_pool2d", kernel, options);
  Tensor input = batched("max_pool2d", x);
  Attrs attrs;
  attrs.set("kernel_size", kernel)
      .set("stride", stride)
      .set("padding", options.padding)
      .set("dilation", options.dilation);
  attrs.set("ceil_mode", options.ceil_mode);
  const Tensor* inputs[] = {&input};
  Tensor y = run_all({max_pool2d_op, inputs, attrs, {}, wants_gradient(x) ? 3u : 1u})[0];
  return shape_of(x).size() == 3 ? squeeze(y, 0) : y;
}

Tensor avg_pool2d(const Tensor& x, const Shape& kernel, const Pool2dOptions& options) {
  Shape stride = check_window("avg_pool2d", kernel, options);
  if (!(options.dilation == Shape{1, 1}))
    throw ValueError("avg_pool2d: has no dilation, found " + options.dilation.str());
  Tensor input = batched("avg_pool2d", x);
  Attrs attrs;
  attrs.set("kernel_size", kernel).set("stride", stride).set("padding", options.padding);
  attrs.set("ceil_mode", options.ceil_mode).set("count_include_pad", options.count_include_pad);
  Tensor y = run(avg_pool2d_op, {&input}, attrs);
  return shape_of(x).size() == 3 ? squeeze(y, 0) : y;
}

Tensor adaptive_avg_pool2d(const Tensor& x, const Shape& output_size) {
  check_pair("adaptive_avg_pool2d", "output_size", output_size, 0);
  Tensor input = batched("adaptive_avg_pool2d", x);
  Tensor y = run(adaptive_avg_pool2d_op, {&input}, Attrs().set("output_size", output_size));
  return shape_of(x).size() == 3 ? squeeze(y, 0) : y;
}

}  // namespace tenon
