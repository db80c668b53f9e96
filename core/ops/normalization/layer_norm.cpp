// layer_norm (core/ops/normalization.h).
#include <tenon/core/base/number_text.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/normalization.h>
#include <tenon/core/ops/normalization/fused.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>

namespace tenon {

namespace {

Shape last_dims(size_t rank, int64_t count) {
  Shape dims;
  for (size_t d = rank - static_cast<size_t>(count); d < rank; ++d)
    dims.push_back(static_cast<int64_t>(d));
  return dims;
}

// The dimensions before the normalized ones, and those themselves.
Shape leading(const Shape& shape, int64_t count) {
  return Shape(shape.span().first(shape.size() - static_cast<size_t>(count)));
}
Shape trailing(const Shape& shape, int64_t count) {
  return Shape(shape.span().last(static_cast<size_t>(count)));
}

void infer_layer_norm(Infer& infer) {
  const TensorDesc& x = infer.in(0);
  DType t = dtype_of(x);
  int64_t count = normalized_ndim(infer, x);
  Shape wanted = trailing(shape_of(x), count);
  infer.require_dtype(is_floating_point(t), 0, "a floating type");
  require_parameter_dtypes(infer, 3);
  for (size_t i = 1; i < 3; ++i) {
    if (!infer.has(i)) continue;
    if (!(shape_of(infer.in(i)) == wanted))
      infer.shape_error(fmt::format("{} has shape {}, but normalized_shape is {}",
                                    i == 1 ? "weight" : "bias", shape_of(infer.in(i)), wanted));
  }
  infer.output(t, shape_of(x));
  for (int i = 0; i < 2; ++i) infer.output(computation_type(t), leading(shape_of(x), count));
}

// The gradients of x, weight and bias. With h = (x - mean) invstd and k = g weight:
//   gx = invstd (k - mean(k) - h mean(k h)).
void layer_norm_composed_backward(const Tensor& g, const Tensor& x, const Tensor& weight,
                                  const Tensor& centre, const Tensor& invstd, int64_t count,
                                  Grads out) {
  Shape dims = last_dims(shape_of(x).size(), count), wanted = trailing(shape_of(x), count);
  Tensor h = (x - centre) * invstd, k = weight.defined() ? g * weight : g;
  out[0] = (k - mean(k, dims, true) - h * mean(k * h, dims, true)) * invstd;
  out[1] = sum_to(g * h, wanted);
  out[2] = sum_to(g, wanted);
}

void infer_layer_norm_backward(Infer& infer) {
  const TensorDesc& x = infer.in(1);
  Shape wanted = trailing(shape_of(x), normalized_ndim(infer, x));
  infer.output(dtype_of(x), shape_of(x));
  for (int i = 0; i < 2; ++i) infer.output(parameter_gradient_type(infer), wanted);
}

void decompose_layer_norm_backward(const Call& call, Outputs& out) {
  const Tensor& x = call.in(1);
  int64_t count = call.attrs.get_int("normalized_ndim");
  Shape rows = keepdim_shape(shape_of(x), last_dims(shape_of(x).size(), count));
  out.resize(3);
  layer_norm_composed_backward(call.in(0), x, call.optional(2), call.in(3).reshape(rows),
                               call.in(4).reshape(rows), count, out);
}

// | `layer_norm_backward` | g, x, weight?, mean, invstd -> gx?, gweight?, gbias? |
//   `normalized_ndim` | |
const Op layer_norm_backward_op{{
    .name = "layer_norm_backward",
    .infer = infer_layer_norm_backward,
    .decompose = decompose_layer_norm_backward,
}};

// The gradient in a form that has one itself. The saved statistics carry no gradient, so they are
// computed from x again.
void layer_norm_composed_gradient(const GradContext& c, Grads g) {
  const Tensor& x = c.input(0);
  int64_t count = c.attrs.get_int("normalized_ndim");
  Shape dims = last_dims(shape_of(x).size(), count);
  layer_norm_composed_backward(c.grad(), x, c.input(1), mean(x, dims, true),
                               rsqrt(var(x, dims, 0, true) + c.attrs.get_float("eps")), count, g);
}

void layer_norm_gradient(const GradContext& c, Grads g) {
  if (grad_enabled()) return layer_norm_composed_gradient(c, g);
  fused_gradient(layer_norm_backward_op, c,
                 Attrs().set("normalized_ndim", c.attrs.get_int("normalized_ndim")), g);
}

void decompose_layer_norm(const Call& call, Outputs& out) {
  const Tensor& x = call.in(0);
  int64_t count = call.attrs.get_int("normalized_ndim");
  Shape dims = last_dims(shape_of(x).size(), count), rows = leading(shape_of(x), count);
  Tensor centre = mean(x, dims, true),
         invstd = rsqrt(var(x, dims, 0, true) + call.attrs.get_float("eps"));
  Tensor y = (x - centre) * invstd;
  if (call.has(1)) y = y * call.in(1);
  if (call.has(2)) y = y + call.in(2);
  out = {y, centre.reshape(rows), invstd.reshape(rows)};
}

// | `layer_norm` | x, weight?, bias? -> y, mean?, invstd? | `normalized_ndim` int, `eps` | over the
//   last normalized_ndim dimensions; weight and bias have their shape. Where x is of a half type
//   they may be f32 instead; gweight and gbias have the type of the weight, and gbias f32 where
//   there is none |
const Op layer_norm_op{{
    .name = "layer_norm",
    .inputs = "x weight bias",
    .infer = infer_layer_norm,
    .gradient = layer_norm_gradient,
    .saves_inputs = 3,
    .saves_outputs = 6,
    .autocast = AutocastRule::f32,
    .decompose = decompose_layer_norm,
}};

}  // namespace

Outputs normalize_rows(const Tensor& x, double eps) {
  const Tensor* inputs[] = {&x, nullptr, nullptr};
  return run_all({layer_norm_op, inputs, Attrs().set("normalized_ndim", 1).set("eps", eps)});
}

Tensor normalize_rows_backward(const Tensor& g, const Tensor& x, const Tensor& mean,
                               const Tensor& invstd) {
  const Tensor* inputs[] = {&g, &x, nullptr, &mean, &invstd};
  return run_all({layer_norm_backward_op, inputs, Attrs().set("normalized_ndim", 1), {}, 1u})[0];
}

Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight,
                  const Tensor& bias, double eps) {
  require_tensor("layer_norm", x);
  const Shape& shape = shape_of(x);
  int64_t count = static_cast<int64_t>(normalized_shape.size());
  require_not_negative("layer_norm", "eps", eps);
  if (count == 0) throw ValueError("layer_norm: normalized_shape must have at least one dimension");
  if (normalized_shape.size() > shape.size() || !(trailing(shape, count) == normalized_shape))
    throw ShapeError(
        fmt::format("layer_norm: normalized_shape {} must be the last dimensions of the input, "
                    "which has shape {}",
                    normalized_shape, shape));
  const Tensor* inputs[] = {&x, weight.defined() ? &weight : nullptr,
                            bias.defined() ? &bias : nullptr};
  bool differentiated = wants_gradient(x) || wants_gradient(weight) || wants_gradient(bias);
  Attrs attrs;
  attrs.set("normalized_ndim", count).set("eps", eps);
  return run_all({layer_norm_op, inputs, attrs, {}, differentiated ? 7u : 1u})[0];
}

}  // namespace tenon
