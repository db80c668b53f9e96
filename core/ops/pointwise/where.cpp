// Selection and limits (core/ops/pointwise.h).
#include <cmath>
#include <limits>

#include <tenon/core/dispatch/replica.h>
#include <tenon/core/ops/arithmetic.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/rules.h>

namespace tenon {

namespace {

void infer_where(Infer& infer) {
  infer.require_dtype(dtype_of(infer.in(0)) == DType::boolean, 0, "bool", DType::boolean);
  const DType dtype = dtype_of(infer.in(1));
  infer.require_dtype(dtype_of(infer.in(2)) == dtype, 2, "the dtype of a", dtype);
  Shape values = broadcast_shapes(shape_of(infer.in(1)), shape_of(infer.in(2)), "where");
  infer.output(dtype, broadcast_shapes(shape_of(infer.in(0)), values, "where"));
}

void where_gradient(const GradContext& c, Grads g) {
  if (c.needs(1)) g[1] = sum_to(where(c.input(0), c.grad(), 0.0), c.input_shape(1));
  if (c.needs(2)) g[2] = sum_to(where(c.input(0), 0.0, c.grad()), c.input_shape(2));
}

// | `where` | condition(bool), a, b -> y | | any |
const Op where_op{{
    .name = "where",
    .inputs = "condition a b",
    .infer = infer_where,
    .gradient = where_gradient,
    .saves_inputs = 1,
    .pointwise = true,
    .promotion = Promotion::common,
    .keeps_types = 1,
}};

// The number as a tensor beside x, in the dtype that both compute in.
Tensor constant_beside(const Tensor& x, Number number) {
  require_held("where", result_type(x, number), number);
  return constant(number, result_type(x, number), device_read_on(x));
}

// The gradient at a bound is 0, as in PyTorch 2.15 (it was 1 before). An infinite bound is none.
void clamp_gradient(const GradContext& c, Grads g) {
  const Tensor& x = c.input(0);
  const double low = c.scalars[0].value.f, high = c.scalars[1].value.f;
  const Tensor above = std::isinf(low) ? ge(x, low) : gt(x, low);
  const Tensor below = std::isinf(high) ? le(x, high) : lt(x, high);
  g[0] = where(logical_and(above, below), c.grad(), 0.0);
}

// | `clamp` | x -> y | ; min, max | floats, integers; NaN stays |
const Op clamp_op{{
    .name = "clamp",
    .infer = infer_numeric,
    .gradient = clamp_gradient,
    .saves_inputs = 1,
    .pointwise = true,
    .scalars = 2,
}};

}  // namespace

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  require_defined("where", {{"condition", condition}, {"a", a}, {"b", b}});
  return run(where_op, {&condition, &a, &b});
}

Tensor where(const Tensor& condition, const Tensor& a, Number b) {
  require_tensor("where", a, "a");
  return where(condition, a, constant_beside(a, b));
}

Tensor where(const Tensor& condition, Number a, const Tensor& b) {
  require_tensor("where", b, "b");
  return where(condition, constant_beside(b, a), b);
}

Tensor where(const Tensor& condition, Number a, Number b) {
  require_tensor("where", condition, "condition");
  const DType dtype = a.boolean && b.boolean     ? DType::boolean
                      : a.integral && b.integral ? DType::i64
                                                 : DType::f32;
  const Device device = device_read_on(condition);
  return where(condition, constant(a, dtype, device), constant(b, dtype, device));
}

Tensor clamp(const Tensor& x, std::optional<Number> min, std::optional<Number> max) {
  require_tensor("clamp", x);
  if (!min && !max) throw ValueError("clamp: at least one of min and max must be given");
  const bool whole_bounds = (!min || min->integral) && (!max || max->integral);
  if (is_floating_point(dtype_of(x)) || !whole_bounds) {
    const double infinity = std::numeric_limits<double>::infinity(), low = min ? min->f : -infinity,
                 high = max ? max->f : infinity;
    Tensor converted = is_floating_point(dtype_of(x)) ? x : x.to(DType::f32);
    // Every element becomes NaN, and the gradient is that of floor, which is 0.
    if (std::isnan(low) || std::isnan(high))
      return add(floor(converted), std::numeric_limits<double>::quiet_NaN());
    return run(clamp_op, {&converted}, {}, {Scalar(low), Scalar(high)});
  }
  using Whole = std::numeric_limits<int64_t>;
  return run(
      clamp_op, {&x}, {},
      {Scalar::integer(min ? min->i : Whole::min()), Scalar::integer(max ? max->i : Whole::max())});
}

}  // namespace tenon
