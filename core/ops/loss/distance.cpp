// Losses of differences (core/ops/loss.h): squares, absolute values, and what is a square near 0
// and linear beyond. Their values, mean and sum are operators that walk through memory once, and so
// are the gradients of the mean and the sum.
#include <limits>

#include <tenon/core/base/number_text.h>
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
  const TensorDesc& x = infer.in(0);
  infer.output(x.dtype, infer.attrs.get_string("reduction") == "none" ? x.shape : Shape());
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

// Scalar `at` of an operator of D, where its differences have a limit.
template <class D, class Context>
double limit_of(const Context& context, size_t at) {
  return D::kHasLimit ? context.scalars[at].value.f : 0;
}

template <class D>
Tensor run_distance(const Op& op, const Tensor& x, const Tensor& y, Reduction reduction,
                    double limit) {
  const Attrs attrs = Attrs().set("reduction", name_of(reduction));
  if constexpr (D::kHasLimit) return run(op, {&x, &y}, attrs, {Scalar(limit)});
  return run(op, {&x, &y}, attrs);
}
template <class D>
Tensor run_distance_backward(const Tensor& g, const Tensor& x, const Tensor& y, double number,
                             double limit) {
  if constexpr (D::kHasLimit)
    return run(D::backward(), {&g, &x, &y}, {}, {Scalar(number), Scalar(limit)});
  return run(D::backward(), {&g, &x, &y}, {}, {Scalar(number)});
}

template <class D>
void distance_gradient(const GradContext& c, Grads g) {
  const auto reduction = c.attrs.get_string("reduction");
  const double count = static_cast<double>(c.input_shape(0).numel()),
               factor = reduction == "mean" ? D::kFactor / count : D::kFactor,
               limit = limit_of<D>(c, 0);
  const Tensor &x = c.input(0), &y = c.input(1);
  // The operator takes one g: with one for each element, it gives the slopes.
  const bool each = reduction == "none";
  const Tensor one = each ? constant(1, dtype_of(x), x.device()) : c.grad();
  const auto backward = [&](double number) {
    const Tensor slopes = run_distance_backward<D>(one, x, y, number, limit);
    return each ? c.grad() * slopes : slopes;
  };
  if (c.needs(0)) g[0] = backward(factor);
  if (!c.needs(1)) return;
  g[1] = c.needs(0) ? neg(g[0]) : backward(-factor);
}

template <class D>
void decompose_distance(const Call& call, Outputs& out) {
  const Tensor values = D::composed_value(call.in(0) - call.in(1), limit_of<D>(call, 0));
  const auto reduction = call.attrs.get_string("reduction");
  out.push_back(reduction == "none" ? values : reduction == "mean" ? mean(values) : sum(values));
}

template <class D>
void distance_backward_gradient(const GradContext& c, Grads g) {
  const Tensor d = c.input(1) - c.input(2);
  const double number = c.scalars[0].value.f, limit = limit_of<D>(c, 1);
  if (c.needs(0)) g[0] = sum(c.grad() * D::slope(d, limit)) * number;
  if (!c.needs(1) && !c.needs(2)) return;
  const Tensor bent = D::bent(c.grad(), c.input(0) * number, d, limit);
  if (c.needs(1)) g[1] = bent;
  if (c.needs(2)) g[2] = neg(bent);
}

template <class D>
void decompose_distance_backward(const Call& call, Outputs& out) {
  out.push_back(D::composed_slope(call.in(1) - call.in(2), limit_of<D>(call, 1)) *
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
      .scalars = D::kHasLimit ? 1 : 0,
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
      .scalars = D::kHasLimit ? 2 : 1,
  };
}

// ---- of a difference d, and perhaps a limit of what counts as small: its value, whose derivative
// is kFactor slope(d), and what slope() makes of a gradient that comes back to it; composed_… is of
// what every backend has

struct SquaredDistance {
  static const Op& backward();
  static constexpr double kFactor = 2;
  static constexpr bool kHasLimit = false;
  static Tensor value(const Tensor& d, double) { return square(d); }
  static Tensor composed_value(const Tensor& d, double) { return square(d); }
  static Tensor slope(const Tensor& d, double) { return d; }
  static Tensor composed_slope(const Tensor& d, double) { return d; }
  static Tensor bent(const Tensor& gradient, const Tensor& scale, const Tensor&, double) {
    return gradient * scale;
  }
};
// | `mse_loss l1_loss` | x, y -> loss | `reduction` "mean" "sum" "none" | floats of one shape,
//   contiguous; (x - y)², \|x - y\|. The loss is a scalar, or has the shape of x for "none" |
const Op mse_loss_op{distance_spec<SquaredDistance>("mse_loss")};
// | `mse_loss_backward l1_loss_backward` | g(scalar), x, y -> gx | ; factor | g factor (x - y), g
//   factor sign(x - y): of a mean of n squares the factor is 2 / n. The sign of NaN is 0 |
const Op mse_loss_backward_op{distance_backward_spec<SquaredDistance>("mse_loss_backward")};
const Op& SquaredDistance::backward() { return mse_loss_backward_op; }

struct AbsoluteDistance {
  static const Op& backward();
  static constexpr double kFactor = 1;
  static constexpr bool kHasLimit = false;
  static Tensor value(const Tensor& d, double) { return abs(d); }
  static Tensor composed_value(const Tensor& d, double) { return abs(d); }
  static Tensor slope(const Tensor& d, double) { return sign(d); }
  static Tensor composed_slope(const Tensor& d, double) {
    const Tensor one = ones_like(d), below = where(eq(d, 0.0), 0.0, neg(one));
    return where(le(d, 0.0), below, where(eq(d, d), one, 0.0));
  }
  static Tensor bent(const Tensor& gradient, const Tensor&, const Tensor&, double) {
    return zeros_like(gradient);
  }
};
const Op l1_loss_op{distance_spec<AbsoluteDistance>("l1_loss")};
const Op l1_loss_backward_op{distance_backward_spec<AbsoluteDistance>("l1_loss_backward")};
const Op& AbsoluteDistance::backward() { return l1_loss_backward_op; }

// With z = d within [-delta, delta], z (d - z / 2): half the square inside, linear outside.
struct HuberDistance {
  static const Op& backward();
  static constexpr double kFactor = 1;
  static constexpr bool kHasLimit = true;
  static Tensor value(const Tensor& d, double delta) { return value_of(d, slope(d, delta)); }
  static Tensor composed_value(const Tensor& d, double delta) {
    return value_of(d, composed_slope(d, delta));
  }
  static Tensor slope(const Tensor& d, double delta) { return clamp(d, -delta, delta); }
  static Tensor composed_slope(const Tensor& d, double delta) {
    return where(lt(d, -delta), -delta, where(gt(d, delta), delta, d));
  }
  static Tensor bent(const Tensor& gradient, const Tensor& scale, const Tensor& d, double delta) {
    return where(lt(abs(d), delta), gradient * scale, 0.0);
  }

 private:
  static Tensor value_of(const Tensor& d, const Tensor& z) { return z * (d - z * 0.5); }
};
// | `huber_loss smooth_l1_loss` | x, y -> loss | `reduction` "mean" "sum" "none"; limit | as
//   `mse_loss`; floats of one shape, contiguous. With a = \|x - y\|: a² / 2 where a is below the
//   limit, elsewhere limit (a - limit / 2); `smooth_l1_loss` is that divided by the limit, which is
//   above 0 and has a finite reciprocal |
const Op huber_loss_op{distance_spec<HuberDistance>("huber_loss")};
// | `huber_loss_backward smooth_l1_loss_backward` | g(scalar), x, y -> gx | ; factor, limit | g
//   factor z, where z is x - y within [-limit, limit], for `smooth_l1_loss` divided by the limit.
//   Of NaN it is NaN |
const Op huber_loss_backward_op{distance_backward_spec<HuberDistance>("huber_loss_backward")};
const Op& HuberDistance::backward() { return huber_loss_backward_op; }

// The same divided by delta, which is called beta here.
struct SmoothL1Distance {
  static const Op& backward();
  static constexpr double kFactor = 1;
  static constexpr bool kHasLimit = true;
  static Tensor value(const Tensor& d, double beta) { return HuberDistance::value(d, beta) / beta; }
  static Tensor composed_value(const Tensor& d, double beta) {
    return HuberDistance::composed_value(d, beta) / beta;
  }
  static Tensor slope(const Tensor& d, double beta) { return HuberDistance::slope(d, beta) / beta; }
  static Tensor composed_slope(const Tensor& d, double beta) {
    return HuberDistance::composed_slope(d, beta) / beta;
  }
  static Tensor bent(const Tensor& gradient, const Tensor& scale, const Tensor& d, double beta) {
    return HuberDistance::bent(gradient, scale / beta, d, beta);
  }
};
const Op smooth_l1_loss_op{distance_spec<SmoothL1Distance>("smooth_l1_loss")};
const Op smooth_l1_loss_backward_op{
    distance_backward_spec<SmoothL1Distance>("smooth_l1_loss_backward")};
const Op& SmoothL1Distance::backward() { return smooth_l1_loss_backward_op; }

// Whether the operator computes the loss: two tensors whose elements lie alike, without weights.
bool is_distance_of_one_walk(const Tensor& x, const Tensor& y, Reduction reduction,
                             const Tensor& weight) {
  return reduction != Reduction::batchmean && !weight.defined() && is_floating_point(dtype_of(x)) &&
         dtype_of(x) == dtype_of(y) && shape_of(x) == shape_of(y) && x.is_contiguous() &&
         y.is_contiguous();
}

// With weights, the mean of mse_loss and l1_loss is by their sum.
Tensor reduce_weighted_distance(const char* op, const Tensor& loss, const Tensor& x,
                                const Tensor& weight, Reduction reduction, bool by_weights) {
  const Tensor values = weighted_loss(op, loss, x, weight);
  if (!weight.defined() || reduction != Reduction::mean || !by_weights)
    return reduce_loss(op, values, reduction);
  return sum(values) / sum(weight);
}

template <class D>
Tensor distance(const Op& op, const Tensor& x, const Tensor& y, Reduction reduction,
                const Tensor& weight, double limit = 0) {
  if (const Autocasting cast{op.name, {&x, &y}})
    return distance<D>(op, cast(x), cast(y), reduction, weight, limit);
  require_defined(op.name, {{"x", x}, {"y", y}});
  if (is_distance_of_one_walk(x, y, reduction, weight))
    return run_distance<D>(op, x, y, reduction, limit);
  if (const Widening wide{&x, &y, &weight})
    return wide.rounded(distance<D>(op, wide(x), wide(y), reduction, wide(weight), limit));
  warn_of_broadcasting(op.name, x, y);
  return reduce_weighted_distance(op.name, D::value(x - y, limit), x, weight, reduction,
                                  !D::kHasLimit);
}

// Whether 1 / beta has no value in the dtype that the loss of x is computed in.
bool counts_as_zero(double beta, const Tensor& x) {
  return beta * (dtype_of(x) == f64 ? std::numeric_limits<double>::max()
                                    : static_cast<double>(std::numeric_limits<float>::max())) <
         1;
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

Tensor huber_loss(const Tensor& x, const Tensor& y, Reduction reduction, double delta,
                  const Tensor& weight) try {
  if (!(delta > 0))
    throw ValueError(
        fmt::format("huber_loss: delta must be above 0, found {}", number_text(delta)));
  return distance<HuberDistance>(huber_loss_op, x, y, reduction, weight, delta);
} catch (const Error&) {
  rethrow_in("huber_loss");
}

Tensor smooth_l1_loss(const Tensor& x, const Tensor& y, Reduction reduction, double beta) try {
  if (!(beta >= 0))
    throw ValueError(
        fmt::format("smooth_l1_loss: beta must not be below 0, found {}", number_text(beta)));
  require_defined("smooth_l1_loss", {{"x", x}, {"y", y}});
  if (counts_as_zero(beta, x)) return l1_loss(x, y, reduction);
  return distance<SmoothL1Distance>(smooth_l1_loss_op, x, y, reduction, Tensor(), beta);
} catch (const Error&) {
  rethrow_in("smooth_l1_loss");
}

}  // namespace tenon
