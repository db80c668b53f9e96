// SquaredDistance and absolute differences (core/ops/loss.h). Their mean and their sum are
// operators that walk through memory once, and so are the gradients of these.
#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/dispatch/widening.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/creation.h>
#include <tenon/core/ops/loss.h>
#include <tenon/core/ops/loss/reduce_loss.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>

namespace tenon {

namespace {

void require_alike_from(const Infer& infer, size_t first) {
  const TensorDesc &x = infer.in(first), &y = infer.in(first + 1);
  infer.require_dtype(is_floating_point(x.dtype), first, "a floating type");
  infer.require_dtype(y.dtype == x.dtype, first + 1, "the dtype of x", x.dtype);
  if (!(x.shape == y.shape))
    infer.shape_error(fmt::format("x has shape {}, but y {}", x.shape, y.shape));
}

void infer_distance(Infer& infer) {
  require_alike_from(infer, 0);
  infer.output(infer.in(0).dtype, {});
}

// Inputs g, x and y, and a number: g number slope(x - y), of one g.
void infer_distance_backward(Infer& infer) {
  require_alike_from(infer, 1);
  const TensorDesc &g = infer.in(0), &x = infer.in(1);
  infer.require_dtype(g.dtype == x.dtype, 0, "the dtype of x", x.dtype);
  if (!g.shape.empty())
    infer.shape_error(
        fmt::format("the gradient has shape {}, but the loss is one number", g.shape));
  infer.output(x.dtype, x.shape);
}

template <class D>
Tensor run_distance_backward(const Tensor& g, const Tensor& x, const Tensor& y, double number) {
  return run(D::backward(), {&g, &x, &y}, {}, {Scalar(number)});
}

template <class D>
void distance_gradient(const GradContext& c, Grads g) {
  const double count = static_cast<double>(c.input_shape(0).numel()),
               factor = c.attrs.get_string("reduction") == "mean" ? D::factor / count : D::factor;
  const Tensor &x = c.input(0), &y = c.input(1);
  if (c.needs(0)) g[0] = run_distance_backward<D>(c.grad(), x, y, factor);
  if (!c.needs(1)) return;
  g[1] = c.needs(0) ? neg(g[0]) : run_distance_backward<D>(c.grad(), x, y, -factor);
}

template <class D>
void decompose_distance(const Call& call, Outputs& out) {
  const Tensor values = D::value(call.in(0) - call.in(1));
  out.push_back(call.attrs.get_string("reduction") == "mean" ? mean(values) : sum(values));
}

template <class D>
void distance_backward_gradient(const GradContext& c, Grads g) {
  const Tensor &x = c.input(1), &y = c.input(2);
  const double number = c.scalars[0].value.f;
  if (c.needs(0)) g[0] = sum(c.grad() * D::slope(x - y)) * number;
  if (!c.needs(1) && !c.needs(2)) return;
  const Tensor bent = D::bent(c.grad(), c.input(0) * number);
  if (c.needs(1)) g[1] = bent;
  if (c.needs(2)) g[2] = neg(bent);
}

template <class D>
void decompose_distance_backward(const Call& call, Outputs& out) {
  out.push_back(D::composed_slope(call.in(1) - call.in(2)) *
                (call.in(0) * call.scalars[0].value.f));
}

template <class D>
OpSpec distance_spec(const char* name) {
  return {
      .name = name,
      .inputs = "x y",
      .infer = infer_distance,
      .gradient = distance_gradient<D>,
      .saves_inputs = 3,
      .autocast = AutocastRule::f32,
      .decompose = decompose_distance<D>,
  };
}
template <class D>
OpSpec distance_backward_spec(const char* name) {
  return {
      .name = name,
      .inputs = "gradient x y",
      .infer = infer_distance_backward,
      .gradient = distance_backward_gradient<D>,
      .saves_inputs = 7,
      .decompose = decompose_distance_backward<D>,
      .scalars = 1,
  };
}

// ---- of a difference d: its value, whose derivative is factor slope(d), and what slope() makes of
// a gradient that comes back to it

struct SquaredDistance {
  static const Op& backward();
  static constexpr double factor = 2;
  static Tensor value(const Tensor& d) { return square(d); }
  static Tensor slope(const Tensor& d) { return d; }
  static Tensor composed_slope(const Tensor& d) { return d; }
  static Tensor bent(const Tensor& gradient, const Tensor& scale) { return gradient * scale; }
};
const Op mse_loss_op{distance_spec<SquaredDistance>("mse_loss")};
const Op mse_loss_backward_op{distance_backward_spec<SquaredDistance>("mse_loss_backward")};
const Op& SquaredDistance::backward() { return mse_loss_backward_op; }

struct AbsoluteDistance {
  static const Op& backward();
  static constexpr double factor = 1;
  static Tensor value(const Tensor& d) { return abs(d); }
  static Tensor slope(const Tensor& d) { return sign(d); }
  // Of what every backend has.
  static Tensor composed_slope(const Tensor& d) {
    const Tensor one = ones_like(d), below = where(eq(d, 0.0), 0.0, neg(one));
    return where(le(d, 0.0), below, where(eq(d, d), one, 0.0));
  }
  static Tensor bent(const Tensor& gradient, const Tensor&) { return zeros_like(gradient); }
};
const Op l1_loss_op{distance_spec<AbsoluteDistance>("l1_loss")};
const Op l1_loss_backward_op{distance_backward_spec<AbsoluteDistance>("l1_loss_backward")};
const Op& AbsoluteDistance::backward() { return l1_loss_backward_op; }

// Whether the operator computes the loss: one number of two tensors whose elements lie alike.
bool is_distance_of_one_walk(const Tensor& x, const Tensor& y, Reduction reduction,
                             const Tensor& weight) {
  return (reduction == Reduction::mean || reduction == Reduction::sum) && !weight.defined() &&
         is_floating_point(dtype_of(x)) && dtype_of(x) == dtype_of(y) &&
         shape_of(x) == shape_of(y) && x.is_contiguous() && y.is_contiguous();
}

// With weights, a mean is by their sum.
Tensor reduce_weighted_distance(const char* op, const Tensor& loss, const Tensor& x,
                                const Tensor& weight, Reduction reduction) {
  const Tensor values = weighted_loss(op, loss, x, weight);
  if (!weight.defined() || reduction != Reduction::mean) return reduce_loss(op, values, reduction);
  return sum(values) / sum(weight);
}

template <class D>
Tensor distance(const Op& op, const Tensor& x, const Tensor& y, Reduction reduction,
                const Tensor& weight) {
  if (const Autocasting cast{op.name, {&x, &y}})
    return distance<D>(op, cast(x), cast(y), reduction, weight);
  require_defined(op.name, {{"x", x}, {"y", y}});
  if (is_distance_of_one_walk(x, y, reduction, weight))
    return run(op, {&x, &y}, Attrs().set("reduction", name_of(reduction)));
  if (const Widening wide{&x, &y, &weight})
    return wide.rounded(distance<D>(op, wide(x), wide(y), reduction, wide(weight)));
  warn_of_broadcasting(op.name, x, y);
  return reduce_weighted_distance(op.name, D::value(x - y), x, weight, reduction);
}

}  // namespace

Tensor mse_loss(const Tensor& x, const Tensor& y, Reduction reduction, const Tensor& weight) try {
  return distance<SquaredDistance>(mse_loss_op, x, y, reduction, weight);
} catch (const Error&) {
  rethrow_in("mse_loss");
}

Tensor l1_loss(const Tensor& x, const Tensor& y, Reduction reduction, const Tensor& weight) try {
  return distance<AbsoluteDistance>(l1_loss_op, x, y, reduction, weight);
} catch (const Error&) {
  rethrow_in("l1_loss");
}

}  // namespace tenon
