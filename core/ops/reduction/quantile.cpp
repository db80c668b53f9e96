// Quantiles (core/ops/sort.h).
#include <limits>

#include <tenon/core/format.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>
#include <tenon/core/ops/sort.h>

namespace tenon {

namespace {

struct Wanted {
  const char* op;
  std::optional<int64_t> dim;
  bool keepdim, without_nan;
  std::string_view interpolation;
};

void require_interpolation(const Wanted& w) {
  for (std::string_view known : {"linear", "lower", "higher", "midpoint", "nearest"})
    if (w.interpolation == known) return;
  throw ValueError(
      fmt::format("{}: interpolation must be linear, lower, higher, midpoint or nearest, found "
                  "\"{}\"",
                  w.op, w.interpolation));
}

// (x.size(dim), the others' shape as the result has it); the lines of x are rows of the first.
struct Lines {
  Tensor rows;
  Shape result;
};
Lines lines_of(const Tensor& x, const Wanted& w) {
  const Shape& shape = shape_of(x);
  if (!w.dim || shape.empty())
    return {flatten(x), w.keepdim ? Shape::filled(shape.size(), 1) : Shape{}};
  const int64_t dim = *w.dim;
  Shape order, result = shape;
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d)
    if (d != dim) order.push_back(d);
  order.push_back(dim);
  result[dim] = 1;
  if (!w.keepdim) result.erase(static_cast<size_t>(dim));
  return {permute(x, order), result};
}

// Places between 0 and the last of the elements that count: with NaN among them the last, which is
// NaN, and 0 where none counts. In f32, a place beyond 2^24 would be rounded to another one.
Tensor places(const Tensor& sorted, const Tensor& given, const Wanted& w) {
  const NoGrad guard;
  const int64_t n = sorted.size(-1);
  const DType t = n > int64_t{1} << 24 ? DType::f64 : dtype_of(sorted);
  const Tensor q = given.to(t), numbers = sum(eq(sorted, sorted).to(DType::i64), -1, true);
  if (w.without_nan) return maximum(q * (numbers - 1).to(t), 0.0);
  return where(eq(numbers, n), q * static_cast<double>(n - 1), static_cast<double>(n - 1));
}

// a + weight (b - a), computed from the nearer end.
Tensor between(const Tensor& a, const Tensor& b, const Tensor& weight) {
  const Tensor step = b - a;
  return where(lt(weight, 0.5), a + weight * step, b - step * (1.0 - weight));
}

Tensor at_places(const Tensor& sorted, const Tensor& place, const Wanted& w) {
  const auto pick = [&](const Tensor& p) { return gather(sorted, -1, p.to(DType::i64)); };
  if (w.interpolation == "lower") return pick(floor(place));
  if (w.interpolation == "higher") return pick(ceil(place));
  if (w.interpolation == "nearest") return pick(round(place));
  const Tensor below = floor(place);
  const Tensor weight =
      w.interpolation == "midpoint"
          ? full(place.shape(), 0.5, {.dtype = dtype_of(place), .device = place.device()})
          : place - below;
  return between(pick(below), pick(ceil(place)), weight.to(dtype_of(sorted)));
}

Tensor run_quantile(const Tensor& x, const Tensor& q, Wanted w) {
  require_defined(w.op, {{"x", x}, {"q", q}});
  const DType t = dtype_of(x);
  if (t != DType::f32 && t != DType::f64)
    throw DTypeError(
        fmt::format("{}: x must be f32 or f64, found {}; {}", w.op, t, conversion_to(DType::f32)));
  if (dtype_of(q) != t)
    throw DTypeError(fmt::format("{}: q must have the dtype of x, {}; found {}; {}", w.op, t,
                                 dtype_of(q), conversion_to(t, "q")));
  if (shape_of(q).size() > 1)
    throw ShapeError(
        fmt::format("{}: q must be a scalar or a vector, found shape {}", w.op, shape_of(q)));
  require_interpolation(w);
  if (w.dim) w.dim = wrap_dim_of(x, *w.dim, w.op);
  if ((w.dim ? size_along(x, *w.dim) : x.numel()) == 0)
    throw ValueError(
        fmt::format("{}: a tensor of shape {} has no elements to choose from", w.op, shape_of(x)));
  const auto [rows, result] = lines_of(x, w);
  const Tensor sorted = sort(rows, -1).values, given = q.detach().reshape({-1});
  const Tensor bounded = clamp(given, 0, 1);
  Shape found = rows.shape();
  found[-1] = given.numel();
  const Tensor place = places(sorted, bounded, w).expand(found).contiguous();
  const Tensor inside = logical_and(ge(given, 0.0), le(given, 1.0));
  const Tensor y =
      where(inside, at_places(sorted, place, w), std::numeric_limits<double>::quiet_NaN());
  if (shape_of(q).empty()) return y.reshape(result);
  Shape order{static_cast<int64_t>(found.size()) - 1}, shape{given.numel()};
  for (int64_t d = 0; d + 1 < static_cast<int64_t>(found.size()); ++d) order.push_back(d);
  for (int64_t n : result) shape.push_back(n);
  return permute(y, order).reshape(shape);
}

Tensor as_q(const Tensor& x, double q, const char* op) {
  require_tensor(op, x);
  if (!(q >= 0 && q <= 1))
    throw ValueError(fmt::format("{}: q must lie in [0, 1], found {}", op, q));
  return constant(q, is_floating_point(dtype_of(x)) ? dtype_of(x) : DType::f32, x.device());
}

}  // namespace

Tensor quantile(const Tensor& x, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                std::string_view interpolation) try {
  return run_quantile(x, q, {"quantile", dim, keepdim, false, interpolation});
} catch (const Error&) {
  rethrow_in("quantile");
}
Tensor quantile(const Tensor& x, double q, std::optional<int64_t> dim, bool keepdim,
                std::string_view interpolation) {
  return quantile(x, as_q(x, q, "quantile"), dim, keepdim, interpolation);
}
Tensor nanquantile(const Tensor& x, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                   std::string_view interpolation) try {
  return run_quantile(x, q, {"nanquantile", dim, keepdim, true, interpolation});
} catch (const Error&) {
  rethrow_in("nanquantile");
}
Tensor nanquantile(const Tensor& x, double q, std::optional<int64_t> dim, bool keepdim,
                   std::string_view interpolation) {
  return nanquantile(x, as_q(x, q, "nanquantile"), dim, keepdim, interpolation);
}

}  // namespace tenon
