// group_norm (core/ops/normalization.h).
#include <tenon/core/base/number_text.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/normalization.h>
#include <tenon/core/ops/normalization/channels.h>
#include <tenon/core/ops/normalization/fused.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

// All dimensions except that of the channels.
Shape dims_beside_channels(const Shape& x) {
  Shape dims = {0};
  for (size_t d = 2; d < x.size(); ++d) dims.push_back(static_cast<int64_t>(d));
  return dims;
}

// A row for each group of each image.
Shape group_rows(const Shape& x, int64_t groups) {
  const int64_t rows = x[0] * groups;
  return {rows, rows ? x.numel() / rows : 1};
}

void infer_group_norm(Infer& infer) {
  const TensorDesc& x = infer.in(0);
  const Shape statistics = {shape_of(x)[0], infer.attrs.get_int("num_groups")};
  require_parameter_dtypes(infer, 3);
  infer.output(dtype_of(x), shape_of(x));
  for (int i = 0; i < 2; ++i) infer.output(computation_type(dtype_of(x)), statistics);
}

void infer_group_norm_backward(Infer& infer) {
  const TensorDesc& x = infer.in(1);
  infer.output(dtype_of(x), shape_of(x));
  for (int i = 0; i < 2; ++i) infer.output(parameter_gradient_type(infer), {shape_of(x)[1]});
}

// The gradients of weight and bias, with `h` the normalized x.
void parameter_gradients(const Tensor& g, const Tensor& h, Grads out) {
  const Shape dims = dims_beside_channels(shape_of(g));
  out[1] = sum(g * h.reshape(shape_of(g)), dims);
  out[2] = sum(g, dims);
}
Tensor weighted_rows(const Tensor& g, const Tensor& weight, const Shape& rows) {
  return (weight.defined() ? g * by_channel(weight, shape_of(g)) : g).reshape(rows);
}

void decompose_group_norm_backward(const Call& call, Outputs& out) {
  const Tensor &g = call.in(0), &x = call.in(1), &mean = call.in(3), &invstd = call.in(4);
  const Shape rows = group_rows(shape_of(x), call.attrs.get_int("num_groups"));
  const Tensor values = x.reshape(rows), m = mean.reshape({rows[0]}), s = invstd.reshape({rows[0]});
  out.resize(3);
  out[0] = normalize_rows_backward(weighted_rows(g, call.optional(2), rows), values, m, s)
               .reshape(shape_of(x));
  if (call.wanted & 6u) parameter_gradients(g, (values - m.unsqueeze(1)) * s.unsqueeze(1), out);
}

// | `group_norm_backward` | g, x, weight?, mean, invstd -> gx?, gweight?, gbias? | `num_groups` | |
const Op group_norm_backward_op{{
    .name = "group_norm_backward",
    .infer = infer_group_norm_backward,
    .decompose = decompose_group_norm_backward,
}};

// The gradient in a form that has one itself. The saved statistics carry no gradient, so they are
// computed from x again. With h = (x - mean) invstd and k = g weight:
//   gx = invstd (k - mean(k) - h mean(k h)).
void group_norm_composed_gradient(const GradContext& c, Grads out) {
  const Tensor& x = c.input(0);
  const Shape rows = group_rows(shape_of(x), c.attrs.get_int("num_groups"));
  const Tensor values = x.reshape(rows), k = weighted_rows(c.grad(), c.input(1), rows),
               invstd = rsqrt(var(values, {1}, 0, true) + c.attrs.get_float("eps")),
               h = (values - mean(values, {1}, true)) * invstd;
  out[0] = ((k - mean(k, {1}, true) - h * mean(k * h, {1}, true)) * invstd).reshape(shape_of(x));
  parameter_gradients(c.grad(), h, out);
}

void group_norm_gradient(const GradContext& c, Grads g) {
  if (grad_enabled()) return group_norm_composed_gradient(c, g);
  fused_gradient(group_norm_backward_op, c,
                 Attrs().set("num_groups", c.attrs.get_int("num_groups")), g);
}

void decompose_group_norm(const Call& call, Outputs& out) {
  const Tensor& x = call.in(0);
  const int64_t groups = call.attrs.get_int("num_groups");
  const Shape statistics = {shape_of(x)[0], groups};
  out = normalize_rows(x.reshape(group_rows(shape_of(x), groups)), call.attrs.get_float("eps"));
  out[0] = scale_channels(out[0].reshape(shape_of(x)), call.optional(1), call.optional(2));
  for (size_t i : {1, 2}) out[i] = out[i].reshape(statistics);
}

// | `group_norm` | x(n,c,…), weight(c)?, bias(c)? -> y, mean(n,num_groups)?, invstd(n,num_groups)?
//   | `num_groups` int, `eps` | over each group of c / num_groups channels of an image; types of
//   weight, bias and their gradients as for `layer_norm` |
const Op group_norm_op{{
    .name = "group_norm",
    .inputs = "x weight bias",
    .infer = infer_group_norm,
    .gradient = group_norm_gradient,
    .saves_inputs = 3,
    .saves_outputs = 6,
    .autocast = AutocastRule::f32,
    .decompose = decompose_group_norm,
}};

}  // namespace

Tensor run_group_norm(const Tensor& x, int64_t num_groups, const Tensor& weight, const Tensor& bias,
                      double eps) {
  const Tensor* inputs[] = {&x, weight.defined() ? &weight : nullptr,
                            bias.defined() ? &bias : nullptr};
  const bool differentiated = wants_gradient(x) || wants_gradient(weight) || wants_gradient(bias);
  Attrs attrs;
  attrs.set("num_groups", num_groups).set("eps", eps);
  return run_all({group_norm_op, inputs, attrs, {}, differentiated ? 7u : 1u})[0];
}

Tensor group_norm(const Tensor& x, int64_t num_groups, const Tensor& weight, const Tensor& bias,
                  double eps) {
  require_channels("group_norm", x, 2, {{"weight", &weight}, {"bias", &bias}});
  require_not_negative("group_norm", "eps", eps);
  const Shape& shape = shape_of(x);
  if (num_groups < 1 || shape[1] % num_groups)
    throw ValueError(fmt::format(
        "group_norm: the {} channels of an input of shape {} cannot be divided into {} groups",
        shape[1], shape, num_groups));
  return run_group_norm(x, num_groups, weight, bias, eps);
}

}  // namespace tenon
