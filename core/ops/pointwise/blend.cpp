// Operators on three operands, and heaviside (core/ops/arithmetic.h).
#include <cmath>

#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/dispatch/widening.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/arithmetic.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/rules.h>

namespace tenon {

namespace {

// All tensors that are there have one dtype.
void infer_three(Infer& infer) {
  const DType type = dtype_of(infer.in(0));
  Shape shape = shape_of(infer.in(0));
  for (size_t i = 1; i < infer.size(); ++i) {
    if (!infer.has(i)) continue;
    infer.require_dtype(dtype_of(infer.in(i)) == type, i, "the dtype of the first argument", type);
    shape = broadcast_shapes(shape, shape_of(infer.in(i)), infer.op.name);
  }
  infer.output(type, shape);
}
void infer_three_floating(Infer& infer) {
  infer.require_dtype(is_floating_point(dtype_of(infer.in(0))), 0, "a floating type");
  infer_three(infer);
}
void infer_three_numbers(Infer& infer) {
  infer.require_dtype(dtype_of(infer.in(0)) != DType::boolean, 0, "a floating or integer type",
                      DType::i64);
  infer_three(infer);
}

Tensor shaped(const GradContext& c, size_t i, const Tensor& gradient) {
  return sum_to(gradient, c.input_shape(i));
}

// ---- lerp: a, end, weight?; without it the weight is a scalar

void lerp_gradient(const GradContext& c, Grads g) {
  if (!c.scalars.empty()) {
    const double weight = c.scalars[0].value.f;
    if (c.needs(0)) g[0] = shaped(c, 0, c.grad() * (1 - weight));
    if (c.needs(1)) g[1] = shaped(c, 1, c.grad() * weight);
    return;
  }
  const Tensor& weight = c.input(2);
  if (c.needs(0)) g[0] = shaped(c, 0, c.grad() * (1.0 - weight));
  if (c.needs(1)) g[1] = shaped(c, 1, c.grad() * weight);
  if (c.needs(2)) g[2] = shaped(c, 2, c.grad() * (c.input(1) - c.input(0)));
}
void decompose_lerp(const Call& call, Outputs& out) {
  const Tensor &a = call.in(0), &end = call.in(1);
  const Tensor difference = end - a;
  if (!call.has(2)) {
    const double weight = call.scalars[0].value.f;
    out.push_back(std::abs(weight) < 0.5 ? a + difference * weight
                                         : end - difference * (1 - weight));
    return;
  }
  const Tensor& weight = call.in(2);
  out.push_back(
      where(le(abs(weight), 0.5), a + weight * difference, end - difference * (1.0 - weight)));
}
// | `lerp` | a, b, weight? -> y | ; weight | floats; a + weight (b - a), without the tensor by the
//   scalar. Weights 0 and 1 give a and b |
const Op lerp_op{{
    .name = "lerp",
    .inputs = "a end weight",
    .infer = infer_three_floating,
    .gradient = lerp_gradient,
    .saves_inputs = 7,
    .pointwise = true,
    .decompose = decompose_lerp,
    .number_for = 2,
}};

// ---- addcmul and addcdiv: x + a b and x + a / b

void addcmul_gradient(const GradContext& c, Grads g) {
  if (c.needs(0)) g[0] = shaped(c, 0, c.grad());
  if (c.needs(1)) g[1] = shaped(c, 1, c.grad() * c.input(2));
  if (c.needs(2)) g[2] = shaped(c, 2, c.grad() * c.input(1));
}
void decompose_addcmul(const Call& call, Outputs& out) {
  out.push_back(call.in(0) + call.in(1) * call.in(2));
}
// | `addcmul addcdiv` | x, a, b -> y | | x + a b, x + a / b; floats, `addcmul` integers too |
const Op addcmul_op{{
    .name = "addcmul",
    .inputs = "x a b",
    .infer = infer_three_numbers,
    .gradient = addcmul_gradient,
    .saves_inputs = 6,
    .pointwise = true,
    .autocast = AutocastRule::widest,
    .decompose = decompose_addcmul,
}};

void addcdiv_gradient(const GradContext& c, Grads g) {
  const Tensor &a = c.input(1), &b = c.input(2);
  if (c.needs(0)) g[0] = shaped(c, 0, c.grad());
  if (c.needs(1)) g[1] = shaped(c, 1, c.grad() / b);
  if (c.needs(2)) g[2] = shaped(c, 2, neg(c.grad()) * (a / b / b));
}
void decompose_addcdiv(const Call& call, Outputs& out) {
  out.push_back(call.in(0) + call.in(1) / call.in(2));
}
const Op addcdiv_op{{
    .name = "addcdiv",
    .inputs = "x a b",
    .infer = infer_three_floating,
    .gradient = addcdiv_gradient,
    .saves_inputs = 6,
    .pointwise = true,
    .autocast = AutocastRule::widest,
    .decompose = decompose_addcdiv,
}};

Tensor run_three(const Op& op, const Tensor& x, const Tensor& a, const Tensor& b, Number value) {
  if (const Autocasting cast{op.name, {&x, &a, &b}})
    return run_three(op, cast(x), cast(a), cast(b), value);
  require_defined(op.name, {{"x", x}, {"a", a}, {"b", b}});
  if (value.f == 1) return run(op, {&x, &a, &b});
  require_held(op.name, result_type(a, value), value);
  const DType type = dtype_of(a);
  if (!is_floating_point(type) || size_of(type) >= 4) {
    const Tensor scaled = a * value;
    return run(op, {&x, &scaled, &b});
  }
  // The product of a half is not rounded to one.
  const Tensor scaled = a.to(DType::f32) * value, wide = x.to(DType::f32), c = b.to(DType::f32);
  return run(op, {&wide, &scaled, &c}).to(type);
}

}  // namespace

Tensor lerp(const Tensor& a, const Tensor& end, const Tensor& weight) {
  require_defined("lerp", {{"a", a}, {"end", end}, {"weight", weight}});
  // Without a gradient the kernel does all of it in f32.
  const Widening wide{&a, &end, &weight};
  if (wide && (wants_gradient(a) || wants_gradient(end) || wants_gradient(weight)))
    return wide.rounded(lerp(wide(a), wide(end), wide(weight)));
  return run(lerp_op, {&a, &end, &weight});
}

Tensor lerp(const Tensor& a, const Tensor& end, double weight) {
  require_defined("lerp", {{"a", a}, {"end", end}});
  return run(lerp_op, {&a, &end, nullptr}, {}, {Scalar(weight)});
}

Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, Number value) {
  return run_three(addcmul_op, x, a, b, value);
}
Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, Number value) {
  return run_three(addcdiv_op, x, a, b, value);
}

Tensor heaviside(const Tensor& x, const Tensor& values) try {
  require_defined("heaviside", {{"x", x}, {"values", values}});
  if (dtype_of(x) != dtype_of(values))
    throw DTypeError(fmt::format("heaviside: x is {}, values {}; {}", dtype_of(x), dtype_of(values),
                                 conversion_to(dtype_of(x), "the values")));
  return where(eq(x, 0), values.detach(), gt(x, 0).to(dtype_of(x)));
} catch (const Error&) {
  rethrow_in("heaviside");
}

}  // namespace tenon
