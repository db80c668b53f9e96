// Reductions (core/ops/reduction.h).
#include <algorithm>
#include <cmath>
#include <limits>

#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/reduction/reduce.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

Shape reduced_shape(const Shape& shape, const Shape& dims) {
  Shape result = shape;
  for (size_t i = dims.size(); i-- > 0;) result.erase(static_cast<size_t>(dims[i]));
  return result;
}

namespace {

int64_t reduced_count(const Shape& shape, const Shape& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= shape[static_cast<size_t>(d)];
  return n;
}

void infer_to(Infer& infer, DType result) {
  infer.output(result, reduced_shape(shape_of(infer.in(0)), infer.attrs.get_list("dims")));
}
void infer_sum(Infer& infer) {
  DType t = dtype_of(infer.in(0));
  infer_to(infer, is_floating_point(t) ? t : DType::i64);
}
void infer_extremum(Infer& infer) {
  const Shape& shape = shape_of(infer.in(0));
  infer.require_dtype(dtype_of(infer.in(0)) != DType::boolean, 0, "a floating or integer type",
                      DType::i64);
  if (shape.numel() == 0 && reduced_count(shape, infer.attrs.get_list("dims")) == 0)
    throw ValueError(fmt::format("{}: a tensor of shape {} has no elements to choose from along {}",
                                 infer.op.name, shape, infer.attrs.get_list("dims")));
  infer_to(infer, dtype_of(infer.in(0)));
}
void infer_truth(Infer& infer) { infer_to(infer, DType::boolean); }

Shape dims_of(const GradContext& c) { return c.attrs.get_list("dims"); }
Tensor spread(const GradContext& c, const Tensor& reduced) {
  return unreduce(reduced, dims_of(c), c.input_shape(0));
}

void sum_gradient(const GradContext& c, Grads g) {
  g[0] = spread(c, c.grad().to(c.input_dtype(0)));
}

void mean_gradient(const GradContext& c, Grads g) {
  g[0] = spread(c, c.grad() / static_cast<double>(reduced_count(c.input_shape(0), dims_of(c))));
}

// Returns the products of all elements before each one along the last dimension, or of all behind
// it. Doubling the distance takes log n steps and is exact for elements that are 0, unlike dividing
// the whole product by each element.
Tensor exclusive_products(const Tensor& x, bool from_end) {
  int64_t n = x.size(-1);
  Tensor one = ones_like(x.narrow(-1, 0, 1));
  Tensor result =
      from_end ? cat({x.narrow(-1, 1, n - 1), one}, -1) : cat({one, x.narrow(-1, 0, n - 1)}, -1);
  for (int64_t shift = 1; shift < n; shift *= 2) {
    Tensor pad = ones_like(x.narrow(-1, 0, shift));
    Tensor shifted = from_end ? cat({result.narrow(-1, shift, n - shift), pad}, -1)
                              : cat({pad, result.narrow(-1, 0, n - shift)}, -1);
    result = result * shifted;
  }
  return result;
}

// d(prod)/dx_i is the product of all other elements.
void prod_gradient(const GradContext& c, Grads g) {
  const Tensor& x = c.input(0);
  const Shape& shape = c.input_shape(0);
  if (shape.numel() == 0) {
    g[0] = zeros_like(x);
    return;
  }
  Shape dims = dims_of(c), order, inverse = shape;
  for (size_t d = 0; d < shape.size(); ++d)
    if (std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) == dims.end())
      order.push_back(static_cast<int64_t>(d));
  for (int64_t d : dims) order.push_back(d);
  for (size_t i = 0; i < order.size(); ++i)
    inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  Tensor moved = permute(is_half(dtype_of(x)) ? x.to(DType::f32) : x, order);
  Tensor rows = moved.reshape({-1, reduced_count(shape, dims)});
  Tensor others = exclusive_products(rows, false) * exclusive_products(rows, true);
  g[0] = (spread(c, c.grad()) * permute(others.reshape(moved.shape()), inverse)).to(dtype_of(x));
}

void extremum_gradient(const GradContext& c, Grads g) {
  Tensor chosen = eq(c.input(0), spread(c, c.output(0))).to(c.input_dtype(0));
  g[0] = chosen * spread(c, c.grad() / sum(chosen, dims_of(c)));
}

void var_gradient(const GradContext& c, Grads g) {
  const Tensor& x = c.input(0);
  double n = static_cast<double>(reduced_count(c.input_shape(0), dims_of(c))) -
             static_cast<double>(c.attrs.get_int("correction"));
  Tensor centered = x - mean(x, dims_of(c), true);
  g[0] = spread(c, c.grad() * (2.0 / std::max(n, 0.0))) * centered;
}

void decompose_mean(const Call& call, Outputs& out) {
  Shape dims = call.attrs.get_list("dims");
  Tensor total = dims.empty() ? call.in(0) : sum(call.in(0), dims);
  out.push_back(total / static_cast<double>(reduced_count(shape_of(call.in(0)), dims)));
}

void decompose_var(const Call& call, Outputs& out) {
  Shape dims = call.attrs.get_list("dims");
  const Tensor& x = call.in(0);
  Tensor squares = square(dims.empty() ? x - x : x - mean(x, dims, true));
  double n = static_cast<double>(reduced_count(shape_of(x), dims)) -
             static_cast<double>(call.attrs.get_int("correction"));
  out.push_back((dims.empty() ? squares : sum(squares, dims)) / std::max(n, 0.0));
}

// | `sum mean prod amax amin` | x -> y | `dims` | y has x's shape without dims (keepdim is a view).
//   `sum prod amax amin` integers too, bool and integers sum to i64. Empty: 0, NaN, 1; the core
//   refuses amax and amin of an empty tensor. NaN gives NaN |
const Op sum_op{{
    .name = "sum",
    .infer = infer_sum,
    .gradient = sum_gradient,
    .autocast = AutocastRule::f32,
}};
const Op mean_op{{
    .name = "mean",
    .infer = infer_reduced_floating,
    .gradient = mean_gradient,
    .autocast = AutocastRule::f32,
    .decompose = decompose_mean,
}};
const Op prod_op{{
    .name = "prod",
    .infer = infer_sum,
    .gradient = prod_gradient,
    .saves_inputs = 1,
    .autocast = AutocastRule::f32,
}};
const Op amax_op{{
    .name = "amax",
    .infer = infer_extremum,
    .gradient = extremum_gradient,
    .saves_inputs = 1,
    .saves_outputs = 1,
}};
const Op amin_op{{
    .name = "amin",
    .infer = infer_extremum,
    .gradient = extremum_gradient,
    .saves_inputs = 1,
    .saves_outputs = 1,
}};
// | `var` | x -> y | `dims`, `correction` int | two-pass or Welford |
const Op var_op{{
    .name = "var",
    .infer = infer_reduced_floating,
    .gradient = var_gradient,
    .saves_inputs = 1,
    .autocast = AutocastRule::f32,
    .decompose = decompose_var,
}};
// | `any all` | x(bool) -> y(bool) | `dims` | |
const Op any_op{{.name = "any", .infer = infer_truth}};
const Op all_op{{.name = "all", .infer = infer_truth}};

Tensor truth(const Tensor& x) { return dtype_of(x) == DType::boolean ? x : ne(x, 0); }

Tensor reduce_truth(const Op& op, const Tensor& x, const Shape& dims, bool keepdim) {
  require_tensor(op.name, x);
  return reduce(op, truth(x), dims, keepdim);
}

}  // namespace

void infer_reduced_floating(Infer& infer) {
  const DType t = dtype_of(infer.in(0));
  infer.require_dtype(is_floating_point(t), 0, "a floating type");
  infer.output(t, reduced_shape(shape_of(infer.in(0)), infer.attrs.get_list("dims")));
}

Tensor reduce(const Op& op, const Tensor& x, const Shape& dims, bool keepdim) {
  require_tensor(op.name, x);
  Shape wrapped = wrap_dims(dims, static_cast<int64_t>(shape_of(x).size()), op.name);
  Tensor y = run(op, {&x}, Attrs().set("dims", wrapped));
  return keepdim ? y.view(keepdim_shape(shape_of(x), wrapped)) : y;
}

Tensor sum(const Tensor& x) { return reduce(sum_op, x, {}, false); }
Tensor sum(const Tensor& x, const Shape& dims, bool keepdim) {
  return reduce(sum_op, x, dims, keepdim);
}
Tensor sum(const Tensor& x, DType dtype) { return sum(x, {}, false, dtype); }
Tensor sum(const Tensor& x, const Shape& dims, bool keepdim, DType dtype) {
  require_tensor("sum", x);
  return sum(x.to(dtype), dims, keepdim).to(dtype);
}
Tensor prod(const Tensor& x) { return reduce(prod_op, x, {}, false); }
Tensor prod(const Tensor& x, const Shape& dims, bool keepdim) {
  return reduce(prod_op, x, dims, keepdim);
}
Tensor mean(const Tensor& x) { return reduce(mean_op, x, {}, false); }
Tensor mean(const Tensor& x, const Shape& dims, bool keepdim) {
  return reduce(mean_op, x, dims, keepdim);
}
Tensor amax(const Tensor& x) { return reduce(amax_op, x, {}, false); }
Tensor amax(const Tensor& x, const Shape& dims, bool keepdim) {
  return reduce(amax_op, x, dims, keepdim);
}
Tensor amin(const Tensor& x) { return reduce(amin_op, x, {}, false); }
Tensor amin(const Tensor& x, const Shape& dims, bool keepdim) {
  return reduce(amin_op, x, dims, keepdim);
}
Tensor any(const Tensor& x) { return reduce_truth(any_op, x, {}, false); }
Tensor any(const Tensor& x, const Shape& dims, bool keepdim) {
  return reduce_truth(any_op, x, dims, keepdim);
}
Tensor all(const Tensor& x) { return reduce_truth(all_op, x, {}, false); }
Tensor all(const Tensor& x, const Shape& dims, bool keepdim) {
  return reduce_truth(all_op, x, dims, keepdim);
}
Tensor var(const Tensor& x, const Shape& dims, int64_t correction, bool keepdim) {
  require_tensor("var", x);
  Shape wrapped = wrap_dims(dims, static_cast<int64_t>(shape_of(x).size()), "var");
  Tensor y = run(var_op, {&x}, Attrs().set("dims", wrapped).set("correction", correction));
  return keepdim ? y.view(keepdim_shape(shape_of(x), wrapped)) : y;
}

Tensor std(const Tensor& x, const Shape& dims, int64_t correction, bool keepdim) try {
  if (const Autocasting cast{"std", {&x}}) return std(cast(x), dims, correction, keepdim);
  // A variance goes beyond the range of a half type long before its root does.
  if (x.defined() && is_half(dtype_of(x)))
    return std(x.to(DType::f32), dims, correction, keepdim).to(dtype_of(x));
  return sqrt_with_zero_gradient(var(x, dims, correction, keepdim));
} catch (const Error&) {
  rethrow_in("std");
}

namespace {

// (sum |x|^p)^(1/p) whose gradient is 0 at elements that are 0, and 0 throughout where the norm is:
// elements and sums there are replaced before the powers are taken, since 0 * inf would be NaN.
Tensor p_norm_with_zero_gradient(const Tensor& x, double p, const Shape& dims, bool keepdim) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor size = abs(x), zero = eq(size, 0.0);
  const Tensor total =
      sum(where(zero, p > 0 ? 0.0 : infinity, pow(where(zero, 1.0, size), p)), dims, keepdim);
  const Tensor vanishes = eq(total, p > 0 ? 0.0 : infinity);
  return where(vanishes, 0.0, pow(where(vanishes, 1.0, total), 1.0 / p));
}

}  // namespace

Tensor norm(const Tensor& x, double p) try { return norm(x, p, {}, false); } catch (const Error&) {
  rethrow_in("norm");
}

Tensor norm(const Tensor& x, double p, const Shape& dims, bool keepdim) try {
  if (const Autocasting cast{"norm", {&x}}) return norm(cast(x), p, dims, keepdim);
  require_tensor("norm", x);
  if (std::isnan(p)) throw ValueError("norm: p must be a number, found NaN");
  if (is_half(dtype_of(x))) return norm(x.to(DType::f32), p, dims, keepdim).to(dtype_of(x));
  Tensor value = is_floating_point(dtype_of(x)) ? x : x.to(DType::f32);
  if (p == 2) return sqrt_with_zero_gradient(sum(square(value), dims, keepdim));
  if (p == 1) return sum(abs(value), dims, keepdim);
  if (p == 0)
    // With the gradient of floor, which is 0.
    return sum(where(ne(value, 0.0), 1.0, floor(value)), dims, keepdim);
  if (std::isinf(p))
    return p > 0 ? amax(abs(value), dims, keepdim) : amin(abs(value), dims, keepdim);
  if (wants_gradient(value)) return p_norm_with_zero_gradient(value, p, dims, keepdim);
  return pow(sum(pow(abs(value), p), dims, keepdim), 1.0 / p);
} catch (const Error&) {
  rethrow_in("norm");
}

Tensor Tensor::sum() const { return tenon::sum(*this); }
Tensor Tensor::sum(const Shape& dims, bool keepdim) const {
  return tenon::sum(*this, dims, keepdim);
}
Tensor Tensor::mean() const { return tenon::mean(*this); }
Tensor Tensor::mean(const Shape& dims, bool keepdim) const {
  return tenon::mean(*this, dims, keepdim);
}

}  // namespace tenon
