// Cumulative sums, products, logarithms of sums and extremes (core/ops/scan.h).
#include <limits>

#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/indexing/indexing.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction/doubling.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/scan.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

int64_t scanned_dim(const GradContext& c) { return c.attrs.get_int("dim"); }

// Returns r with r[i] = b[i] + a[i] r[i + 1] along `dim`; `a` is one shorter than b. Each step
// doubles the distance that is covered, so that there are log2(n) of them and no division.
Tensor recurrence_from_end(Tensor a, Tensor b, int64_t dim) {
  const int64_t n = size_along(b, dim);
  for (int64_t k = 1; k < n; k *= 2) {
    b = cat({b.narrow(dim, 0, n - k) + a * b.narrow(dim, k, n - k), b.narrow(dim, n - k, k)}, dim);
    if (2 * k < n) a = a.narrow(dim, 0, n - 2 * k) * a.narrow(dim, k, n - 2 * k);
  }
  return b;
}
Tensor all_but_first(const Tensor& x, int64_t dim) { return x.narrow(dim, 1, x.size(dim) - 1); }
Tensor all_but_last(const Tensor& x, int64_t dim) { return x.narrow(dim, 0, x.size(dim) - 1); }
bool is_single(const Tensor& x, int64_t dim) { return size_along(x, dim) <= 1; }

// ---- cumsum, forwards or from the end ----

Tensor run_cumsum(const Tensor& x, int64_t dim, bool reverse);

void infer_cumsum(Infer& infer) {
  const DType t = dtype_of(infer.in(0));
  infer.require_dtype(t == DType::f32 || t == DType::f64 || t == DType::i64, 0, "f32, f64 or i64");
  infer.output(t, shape_of(infer.in(0)));
}
void cumsum_gradient(const GradContext& c, Grads g) {
  g[0] = run_cumsum(c.grad(), scanned_dim(c), !c.attrs.get_bool("reverse"));
}
void decompose_cumsum(const Call& call, Outputs& out) {
  out.push_back(doubled(call.in(0), call.attrs.get_int("dim"), call.attrs.get_bool("reverse"),
                        [](const Tensor& a, const Tensor& b) { return a + b; }));
}
// | `cumsum cumprod` | x -> y | `dim`; `cumsum` `reverse` bool | f32, f64, i64: of each line the
//   sum or product of the elements up to each; with `reverse` from its end. Integers wrap |
const Op cumsum_op{{
    .name = "cumsum",
    .infer = infer_cumsum,
    .gradient = cumsum_gradient,
    .autocast = AutocastRule::f32,
    .decompose = decompose_cumsum,
}};
Tensor run_cumsum(const Tensor& x, int64_t dim, bool reverse) {
  return run(cumsum_op, {&x}, Attrs().set("dim", dim).set("reverse", reverse));
}

// ---- cumprod ----

// dy_j/dx_i is the product of all elements up to j but i, so that the gradient is the product of
// those before i times r_i = g_i + x_{i+1} r_{i+1}. It divides by no element: right where some are
// 0, in every order.
void cumprod_gradient(const GradContext& c, Grads g) {
  const int64_t dim = scanned_dim(c);
  const Tensor& x = c.input(0);
  if (is_single(x, dim)) {
    g[0] = c.grad();
    return;
  }
  const Tensor later = recurrence_from_end(all_but_first(x, dim), c.grad(), dim);
  const Tensor y = all_but_last(c.output(0), dim);
  g[0] = cat({later.narrow(dim, 0, 1), later.narrow(dim, 1, y.size(dim)) * y}, dim);
}
void decompose_cumprod(const Call& call, Outputs& out) {
  out.push_back(doubled(call.in(0), call.attrs.get_int("dim"), false,
                        [](const Tensor& a, const Tensor& b) { return a * b; }));
}
const Op cumprod_op{{
    .name = "cumprod",
    .infer = infer_cumsum,
    .gradient = cumprod_gradient,
    .saves_inputs = 1,
    .saves_outputs = 1,
    .autocast = AutocastRule::f32,
    .decompose = decompose_cumprod,
}};

// ---- logcumsumexp ----

// a - b, and 0 where both are the same infinity, whose difference is NaN.
Tensor difference(const Tensor& a, const Tensor& b) {
  const Tensor same = logical_and(eq(a, b), eq(abs(a), std::numeric_limits<double>::infinity()));
  return where(same, 0.0, a - b);
}

// dy_j/dx_i = exp(x_i - y_j). With t_i = sum over j >= i of g_j exp(y_i - y_j), which is
// g_i + exp(y_i - y_{i+1}) t_{i+1}, it is exp(x_i - y_i) t_i: no exponent is positive.
void logcumsumexp_gradient(const GradContext& c, Grads g) {
  const int64_t dim = scanned_dim(c);
  const Tensor &x = c.input(0), &y = c.output(0);
  Tensor later = c.grad();
  if (!is_single(x, dim))
    later = recurrence_from_end(exp(difference(all_but_last(y, dim), all_but_first(y, dim))), later,
                                dim);
  g[0] = exp(difference(x, y)) * later;
}
Tensor log_add_exp(const Tensor& a, const Tensor& b) {
  const Tensor largest = maximum(a, b);
  const Tensor shift =
      where(eq(abs(largest), std::numeric_limits<double>::infinity()), 0.0, largest);
  return log(exp(a - shift) + exp(b - shift)) + shift;
}
void decompose_logcumsumexp(const Call& call, Outputs& out) {
  out.push_back(doubled(call.in(0), call.attrs.get_int("dim"), false, log_add_exp));
}
// | `logcumsumexp` | x -> y | `dim` | f32, f64; log(cumsum(exp(x))) without overflow |
const Op logcumsumexp_op{{
    .name = "logcumsumexp",
    .infer = infer_floating,
    .gradient = logcumsumexp_gradient,
    .saves_inputs = 1,
    .saves_outputs = 1,
    .promotion = Promotion::floating,
    .autocast = AutocastRule::f32,
    .decompose = decompose_logcumsumexp,
}};

// ---- cummax and cummin ----

void infer_chosen(Infer& infer) {
  infer.output(dtype_of(infer.in(0)), shape_of(infer.in(0)));
  infer.output(DType::i64, shape_of(infer.in(0)));
}
void chosen_gradient(const GradContext& c, Grads g) {
  g[0] = add_at(c.input_shape(0), c.grad(), c.attrs.get_int("dim"), c.output(1));
}

// Values and places side by side, the distance doubled in each step as in `doubled`.
template <bool largest>
void decompose_extreme(const Call& call, Outputs& out) {
  const Tensor& x = call.in(0);
  const int64_t dim = call.attrs.get_int("dim"), n = size_along(x, dim);
  Tensor values = x.clone(), places = constant(0, DType::i64, x.device()).expand(x.shape());
  if (n > 1) {
    Shape line = Shape::filled(x.shape().size(), 1);
    line[dim] = n;
    const Tensor numbers = arange(0, n, 1, {.dtype = DType::i64, .device = x.device()});
    places = numbers.view(line).expand(x.shape());
  }
  for (int64_t k = 1; k < n; k *= 2) {
    const Tensor low = values.narrow(dim, 0, n - k), high = values.narrow(dim, k, n - k);
    const Tensor later = logical_or(largest ? ge(high, low) : le(high, low), ne(high, high));
    const auto joined = [&](const Tensor& all) {
      return cat({all.narrow(dim, 0, k),
                  where(later, all.narrow(dim, k, n - k), all.narrow(dim, 0, n - k))},
                 dim);
    };
    places = joined(places);
    values = joined(values);
  }
  out.push_back(values);
  out.push_back(places.contiguous());
}

// | `cummax cummin` | x -> y, indices(i64) | `dim` | any but halves: the extreme so far and where
//   it lies, the last of equals; NaN wins |
const Op cummax_op{{
    .name = "cummax",
    .infer = infer_chosen,
    .gradient = chosen_gradient,
    .saves_outputs = 2,
    .decompose = decompose_extreme<true>,
}};
const Op cummin_op{{
    .name = "cummin",
    .infer = infer_chosen,
    .gradient = chosen_gradient,
    .saves_outputs = 2,
    .decompose = decompose_extreme<false>,
}};

ValuesIndices run_extreme(const Op& op, const Tensor& x, int64_t dim) {
  require_tensor(op.name, x);
  const Attrs attrs = Attrs().set("dim", wrap_dim_of(x, dim, op.name));
  const Tensor from = is_half(x) ? x.to(DType::f32) : x;
  const Tensor* input = &from;
  const Outputs y = run_all({op, {&input, 1}, attrs});
  return {y[0].to(dtype_of(x)), y[1]};
}

// The dtype of the result, and x in the one that it is computed in.
struct Accumulated {
  DType result;
  Tensor x;
};
Accumulated accumulated(const char* op, const Tensor& x, std::optional<DType> dtype) {
  require_tensor(op, x);
  const DType own = dtype_of(x), result = dtype.value_or(is_floating_point(own) ? own : DType::i64);
  const Tensor converted = dtype ? x.to(*dtype) : x;
  if (!is_floating_point(result)) return {result, converted.to(DType::i64)};
  return {result, is_half(converted) ? converted.to(DType::f32) : converted};
}

}  // namespace

Tensor cumsum(const Tensor& x, int64_t dim, std::optional<DType> dtype) {
  if (const Autocasting cast{"cumsum", {&x}}; cast && !dtype) return cumsum(cast(x), dim);
  const auto [result, from] = accumulated("cumsum", x, dtype);
  return run_cumsum(from, wrap_dim_of(x, dim, "cumsum"), false).to(result);
}

Tensor cumprod(const Tensor& x, int64_t dim, std::optional<DType> dtype) {
  if (const Autocasting cast{"cumprod", {&x}}; cast && !dtype) return cumprod(cast(x), dim);
  const auto [result, from] = accumulated("cumprod", x, dtype);
  return run(cumprod_op, {&from}, Attrs().set("dim", wrap_dim_of(x, dim, "cumprod"))).to(result);
}

Tensor logcumsumexp(const Tensor& x, int64_t dim) {
  if (const Autocasting cast{"logcumsumexp", {&x}}) return logcumsumexp(cast(x), dim);
  require_tensor("logcumsumexp", x);
  const Attrs attrs = Attrs().set("dim", wrap_dim_of(x, dim, "logcumsumexp"));
  if (!is_half(x)) return run(logcumsumexp_op, {&x}, attrs);
  const Tensor wide = x.to(DType::f32);
  return run(logcumsumexp_op, {&wide}, attrs).to(dtype_of(x));
}

ValuesIndices cummax(const Tensor& x, int64_t dim) { return run_extreme(cummax_op, x, dim); }
ValuesIndices cummin(const Tensor& x, int64_t dim) { return run_extreme(cummin_op, x, dim); }

Tensor diff(const Tensor& x, int64_t n, int64_t dim, const Tensor& prepend, const Tensor& append) {
  require_tensor("diff", x);
  if (n < 0) throw ValueError(fmt::format("diff: n must not be negative, found {}", n));
  if (shape_of(x).empty())
    throw ShapeError("diff: x must have at least one dimension, found a scalar");
  const int64_t d = wrap_dim_of(x, dim, "diff");
  std::vector<Tensor> parts;
  const auto add = [&](const Tensor& part) {
    Shape slice = shape_of(x);
    slice[d] = 1;
    if (part.defined()) parts.push_back(shape_of(part).empty() ? part.expand(slice) : part);
  };
  add(prepend);
  parts.push_back(x);
  add(append);
  Tensor y = parts.size() > 1 ? cat(parts, d) : x;
  for (n = std::min(n, y.size(d)); n > 0; --n) {
    const int64_t left = std::max<int64_t>(0, y.size(d) - 1);
    const Tensor later = y.narrow(d, y.size(d) - left, left), earlier = y.narrow(d, 0, left);
    y = dtype_of(y) == DType::boolean ? logical_xor(later, earlier) : later - earlier;
  }
  return y;
}

}  // namespace tenon
