// batch_norm (core/ops/normalization.h).
#include <utility>

#include <tenon/core/base/number_text.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/normalization.h>
#include <tenon/core/ops/normalization/channels.h>
#include <tenon/core/ops/normalization/fused.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/pointwise/finish.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

// All dimensions except that of the channels.
Shape batch_dims(const Shape& x) {
  Shape dims = {0};
  for (size_t d = 2; d < x.size(); ++d) dims.push_back(static_cast<int64_t>(d));
  return dims;
}

struct Statistics {
  Tensor mean, invstd;  // (1, c, 1, …)
  bool of_batch;        // functions of x, not constants
};

// The gradients of x, weight and bias. With h = (x - mean) invstd:
//   gx = weight invstd (g - mean(g) - h mean(g h)),
// or weight invstd g where the statistics are constants.
void batch_norm_composed_backward(const Tensor& g, const Tensor& x, const Tensor& weight,
                                  const Statistics& s, Grads out) {
  Shape dims = batch_dims(shape_of(x));
  Tensor h = (x - s.mean) * s.invstd;
  out[0] = (s.of_batch ? g - mean(g, dims, true) - h * mean(g * h, dims, true) : g) * s.invstd;
  if (weight.defined()) out[0] = out[0] * by_channel(weight, shape_of(x));
  out[1] = sum(g * h, dims);
  out[2] = sum(g, dims);
}

void infer_batch_norm_backward(Infer& infer) {
  const TensorDesc& x = infer.in(1);
  infer.output(dtype_of(x), shape_of(x));
  for (int i = 0; i < 2; ++i) infer.output(parameter_gradient_type(infer), {shape_of(x)[1]});
}

void decompose_batch_norm_backward(const Call& call, Outputs& out) {
  const Tensor& x = call.in(1);
  out.resize(3);
  batch_norm_composed_backward(
      call.in(0), x, call.optional(2),
      {by_channel(call.in(3), shape_of(x)), by_channel(call.in(4), shape_of(x)),
       call.attrs.get_bool("training")},
      out);
}

// | `batch_norm_backward` | g, x, weight?, mean, invstd -> gx?, gweight?, gbias? | `training` | not
//   training: mean and invstd are constants |
const Op batch_norm_backward_op{{
    .name = "batch_norm_backward",
    .infer = infer_batch_norm_backward,
    .keeps_format = 2,
    .rows_of_channels = true,
    .decompose = decompose_batch_norm_backward,
}};

// The gradient in a form that has one itself. The saved statistics carry no gradient, so those of
// the batch are computed from x again.
void batch_norm_composed_gradient(const GradContext& c, Grads g) {
  const Tensor& x = c.input(0);
  Shape dims = batch_dims(shape_of(x));
  Statistics statistics;
  if (c.attrs.get_bool("training"))
    statistics = {mean(x, dims, true), rsqrt(var(x, dims, 0, true) + c.attrs.get_float("eps")),
                  true};
  else
    statistics = {by_channel(c.output(1).detach(), shape_of(x)),
                  by_channel(c.output(2).detach(), shape_of(x)), false};
  batch_norm_composed_backward(c.grad(), x, c.input(1), statistics, g);
}

void batch_norm_gradient(const GradContext& c, Grads g) {
  // An empty batch has no statistics, and sums over it are 0 whatever they are.
  if (grad_enabled() || c.input(0).numel() == 0) return batch_norm_composed_gradient(c, g);
  fused_gradient(batch_norm_backward_op, c, Attrs().set("training", c.attrs.get_bool("training")),
                 g);
}

void infer_batch_norm(Infer& infer) {
  require_activation(infer);
  const TensorDesc& x = infer.in(0);
  DType t = dtype_of(x);
  const Shape& shape = shape_of(x);
  infer.require_dtype(is_floating_point(t), 0, "a floating type");
  require_parameter_dtypes(infer, 5);
  const char* names[] = {"x", "weight", "bias", "running_mean", "running_var"};
  for (size_t i = 1; i < 5; ++i) {
    if (!infer.has(i)) continue;
    if (!(shape_of(infer.in(i)) == Shape{shape[1]}))
      infer.shape_error(fmt::format("{} has shape {}, but must be ({},) for an input of shape {}",
                                    names[i], shape_of(infer.in(i)), shape[1], shape));
  }
  infer.output(t, shape);
  require_residual(infer);
  infer.output(computation_type(t), {shape[1]});
  infer.output(computation_type(t), {shape[1]});
  bool updates = infer.attrs.get_bool("training") && infer.has(3);
  for (size_t i = 3; i < 5; ++i) {
    if (updates)
      infer.output_in_place(i);
    else
      infer.no_output();
  }
}

void decompose_batch_norm(const Call& call, Outputs& out) {
  const Tensor& x = call.in(0);
  const Shape& shape = shape_of(x);
  Shape dims = batch_dims(shape);
  bool training = call.attrs.get_bool("training");
  Tensor centre = training ? mean(x, dims) : call.in(3);
  Tensor spread = training ? var(x, dims, 0) : call.in(4);
  Tensor invstd = rsqrt(spread + call.attrs.get_float("eps"));
  Tensor y = (x - by_channel(centre, shape)) *
             by_channel(call.has(1) ? invstd * call.in(1) : invstd, shape);
  if (call.has(2)) y = y + by_channel(call.in(2), shape);
  out = {y, centre, invstd, Tensor(), Tensor()};
  if (!training || !call.has(3)) return;
  double momentum = call.scalars[0].value.f, n = static_cast<double>(shape.numel() / shape[1]);
  out[3] = call.in(3);
  out[4] = call.in(4);
  out[3].copy_(out[3] * (1.0 - momentum) + centre * momentum);
  out[4].copy_(out[4] * (1.0 - momentum) + spread * (momentum * n / (n - 1.0)));
}

// | `batch_norm` | x(n,c,…), weight(c)?, bias(c)?, running_mean(c)?, running_var(c)?, residual? ->
//   y, mean(c)?, invstd(c)?, running_mean', running_var' | `training` bool, `eps`; `residual` and
//   `activation` as [matmul](#linear-algebra); momentum | outputs 3 and 4 alias inputs 3 and 4 and
//   are there only where training and the inputs are. Where x is of a half type, weight, bias and
//   running statistics may all be f32 instead; gweight and gbias have the type of the weight, and
//   gbias f32 where there is none. Running variance is the unbiased one. Not training: normalizes
//   by the running statistics. Of an empty batch, mean and invstd are 0 |
const Op batch_norm_op{{
    .name = "batch_norm",
    .inputs = "x weight bias running_mean running_var",
    .infer = infer_batch_norm,
    .gradient = batch_norm_gradient,
    .saves_inputs = 3,
    .saves_outputs = 6,
    .keeps_format = 1,
    .rows_of_channels = true,
    .decompose = decompose_batch_norm,
    .count_scalars = count_one_and_activation_scalars,
}};

}  // namespace

Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                  const Tensor& weight, const Tensor& bias, bool training, double momentum,
                  double eps) {
  require_tensor("batch_norm", x);
  const Shape& shape = shape_of(x);
  if (shape.size() < 2)
    throw ShapeError(
        fmt::format("batch_norm: needs an input (n, c) or (n, c, …), found shape {}", shape));
  require_not_negative("batch_norm", "eps", eps);
  if (!(momentum >= 0 && momentum <= 1))
    throw ValueError(
        fmt::format("batch_norm: momentum must lie in [0, 1], found {}", number_text(momentum)));
  if (running_mean.defined() != running_var.defined())
    throw ValueError("batch_norm: running_mean and running_var must both be given, or neither");
  if (!training && !running_mean.defined())
    throw ValueError("batch_norm: needs running_mean and running_var where it is not training");
  for (const auto& [name, statistic] :
       {std::pair("running_mean", &running_mean), {"running_var", &running_var}})
    if (wants_gradient(*statistic))
      throw AutogradError(fmt::format(
          "batch_norm: {0} requires a gradient, but the result is not differentiated with "
          "respect to it; give {0}.detach(), or call it inside tenon::NoGrad",
          name));
  if (training && shape[1] > 0 && shape.numel() / shape[1] < 2)
    throw ValueError(
        fmt::format("batch_norm: expected more than 1 value per channel when training, found an "
                    "input of shape {}",
                    shape));
  auto optional = [](const Tensor& t) { return t.defined() ? &t : nullptr; };
  const Tensor* inputs[] = {&x, optional(weight), optional(bias), optional(running_mean),
                            optional(running_var)};
  bool differentiated = wants_gradient(x) || wants_gradient(weight) || wants_gradient(bias);
  Scalar scalars[] = {momentum};
  return run_all({batch_norm_op, inputs, Attrs().set("training", training).set("eps", eps), scalars,
                  differentiated ? 31u : 25u})[0];
}

}  // namespace tenon
