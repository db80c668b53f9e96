// rms_norm (core/ops/normalization.h).
#include <tenon/core/base/number_text.h>
#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/normalization.h>
#include <tenon/core/ops/normalization/fused.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

// The dimensions that are normalized together, of a call of either operator on this x.
struct NormalizedDims {
  Shape dims, normalized, rows, rows_kept;
  NormalizedDims(const Shape& x, const Attrs& attrs) {
    const size_t count = static_cast<size_t>(attrs.get_int("normalized_ndim")),
                 first = x.size() - count;
    normalized = Shape(x.span().last(count));
    rows = rows_kept = Shape(x.span().first(first));
    for (size_t d = first; d < x.size(); ++d) {
      dims.push_back(static_cast<int64_t>(d));
      rows_kept.push_back(1);
    }
  }
};

void infer_rms_norm(Infer& infer) {
  const TensorDesc& x = infer.in(0);
  normalized_ndim(infer, x);
  require_parameter_dtypes(infer, 2);
  infer.output(dtype_of(x), shape_of(x));
  infer.output(computation_type(dtype_of(x)), NormalizedDims(shape_of(x), infer.attrs).rows);
}

void infer_rms_norm_backward(Infer& infer) {
  const TensorDesc& x = infer.in(1);
  normalized_ndim(infer, x);
  infer.output(dtype_of(x), shape_of(x));
  infer.output(parameter_gradient_type(infer), NormalizedDims(shape_of(x), infer.attrs).normalized);
}

// The gradients of x and weight. With h = x scale and k = g weight: gx = scale (k - h mean(k h)).
void rms_norm_composed_backward(const Tensor& g, const Tensor& x, const Tensor& weight,
                                const Tensor& scale, const NormalizedDims& d, Grads out) {
  const Tensor h = x * scale, k = weight.defined() ? g * weight : g;
  out[0] = (k - h * mean(k * h, d.dims, true)) * scale;
  out[1] = sum_to(g * h, d.normalized);
}

void decompose_rms_norm_backward(const Call& call, Outputs& out) {
  const Tensor& x = call.in(1);
  const NormalizedDims d(shape_of(x), call.attrs);
  out.resize(2);
  rms_norm_composed_backward(call.in(0), x, call.optional(2), call.in(3).reshape(d.rows_kept), d,
                             out);
}

// | `rms_norm_backward` | g, x, weight?, scale -> gx?, gweight? | `normalized_ndim` | |
const Op rms_norm_backward_op{{
    .name = "rms_norm_backward",
    .infer = infer_rms_norm_backward,
    .decompose = decompose_rms_norm_backward,
}};

Tensor inverse_root(const Tensor& x, const NormalizedDims& d, double eps) {
  return rsqrt(mean(square(x), d.dims, true) + eps);
}

void rms_norm_gradient(const GradContext& c, Grads g) {
  const Tensor &x = c.input(0), &weight = c.input(1);
  const Attrs attrs = Attrs().set("normalized_ndim", c.attrs.get_int("normalized_ndim"));
  if (grad_enabled()) {
    // The saved factors carry no gradient, so they are computed from x again.
    const NormalizedDims d(shape_of(x), attrs);
    return rms_norm_composed_backward(c.grad(), x, weight,
                                      inverse_root(x, d, c.attrs.get_float("eps")), d, g);
  }
  const Tensor* inputs[] = {&c.grad(), &x, weight.defined() ? &weight : nullptr, &c.output(1)};
  const uint32_t wanted = (c.needs(0) ? 1u : 0u) | (c.needs(1) ? 2u : 0u);
  const auto grads = run_all({rms_norm_backward_op, inputs, attrs, {}, wanted});
  for (size_t i = 0; i < 2; ++i) g[i] = grads[i];
}

void decompose_rms_norm(const Call& call, Outputs& out) {
  const Tensor& x = call.in(0);
  const NormalizedDims d(shape_of(x), call.attrs);
  const Tensor scale = inverse_root(x, d, call.attrs.get_float("eps")), y = x * scale;
  out = {call.has(1) ? y * call.in(1) : y, scale.reshape(d.rows)};
}

// | `rms_norm` | x, weight? -> y, scale? | `normalized_ndim` int, `eps` | x · scale · weight with
//   scale = 1 / sqrt(mean of x² + eps) over the last normalized_ndim dimensions; types of the
//   weight and of gweight as for `layer_norm` |
const Op rms_norm_op{{
    .name = "rms_norm",
    .inputs = "x weight",
    .infer = infer_rms_norm,
    .gradient = rms_norm_gradient,
    .saves_inputs = 3,
    .saves_outputs = 2,
    .autocast = AutocastRule::f32,
    .decompose = decompose_rms_norm,
}};

}  // namespace

Tensor rms_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight,
                std::optional<double> eps) {
  if (const Autocasting cast{"rms_norm", {&x, &weight}})
    return rms_norm(cast(x), normalized_shape, cast(weight), eps);
  require_tensor("rms_norm", x);
  const Shape& shape = shape_of(x);
  const DType dtype = dtype_of(x);
  if (!is_floating_point(dtype))
    throw DTypeError(
        fmt::format("rms_norm: needs a floating input, found {}; {}", dtype, conversion_to(f32)));
  if (eps) require_not_negative("rms_norm", "eps", *eps);
  const size_t count = normalized_shape.size();
  if (count == 0 || count > shape.size() || !(Shape(shape.span().last(count)) == normalized_shape))
    throw ShapeError(fmt::format(
        "rms_norm: normalized_shape {} must be the last dimensions of the input, of which there is "
        "at least one; the input has shape {}",
        normalized_shape, shape));
  if (weight.defined() && !(shape_of(weight) == normalized_shape))
    throw ShapeError(fmt::format("rms_norm: weight has shape {}, but normalized_shape is {}",
                                 shape_of(weight), normalized_shape));
  const Tensor* inputs[] = {&x, weight.defined() ? &weight : nullptr};
  const bool differentiated = wants_gradient(x) || wants_gradient(weight);
  Attrs attrs;
  attrs.set("normalized_ndim", static_cast<int64_t>(count))
      .set("eps", eps.value_or(epsilon_of(computation_type(dtype))));
  return run_all({rms_norm_op, inputs, attrs, {}, differentiated ? 3u : 1u})[0];
}

}  // namespace tenon
