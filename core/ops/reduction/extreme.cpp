// Extremes with their places, and reductions that are made of others (core/ops/reduction.h).
#include <cmath>

#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/dispatch/widening.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

// In a dtype that extremes are computed in: halves as f32, bool as u8.
Tensor comparable(const Tensor& x) {
  if (is_half(x)) return x.to(DType::f32);
  return dtype_of(x) == DType::boolean ? x.to(DType::u8) : x;
}

ValuesIndices extreme(const char* op, bool largest, const Tensor& x, int64_t dim, bool keepdim) {
  require_tensor(op, x);
  const int64_t d = wrap_dim_of(x, dim, op);
  if (size_along(x, d) == 0)
    throw ValueError(
        fmt::format("{}: a tensor of shape {} has no elements to choose from along dim {}", op,
                    shape_of(x), d));
  const Tensor from = comparable(x.detach());
  const Tensor places = largest ? argmax(from, d, true) : argmin(from, d, true);
  const Tensor values = gather(x, d, places);
  if (keepdim || shape_of(x).empty()) return {values, places};
  return {squeeze(values, d), squeeze(places, d)};
}

}  // namespace

Tensor max(const Tensor& x) try {
  require_tensor("max", x);
  return amax(comparable(x)).to(dtype_of(x));
} catch (const Error&) {
  rethrow_in("max");
}
Tensor min(const Tensor& x) try {
  require_tensor("min", x);
  return amin(comparable(x)).to(dtype_of(x));
} catch (const Error&) {
  rethrow_in("min");
}
ValuesIndices max(const Tensor& x, int64_t dim, bool keepdim) try {
  return extreme("max", true, x, dim, keepdim);
} catch (const Error&) {
  rethrow_in("max");
}
ValuesIndices min(const Tensor& x, int64_t dim, bool keepdim) try {
  return extreme("min", false, x, dim, keepdim);
} catch (const Error&) {
  rethrow_in("min");
}
Tensor max(const Tensor& a, const Tensor& b) try { return maximum(a, b); } catch (const Error&) {
  rethrow_in("max");
}
Tensor min(const Tensor& a, const Tensor& b) try { return minimum(a, b); } catch (const Error&) {
  rethrow_in("min");
}

std::pair<Tensor, Tensor> aminmax(const Tensor& x, std::optional<int64_t> dim, bool keepdim) try {
  require_tensor("aminmax", x);
  const Shape dims = dim ? Shape{wrap_dim_of(x, *dim, "aminmax")} : Shape{};
  const Tensor from = comparable(x);
  return {amin(from, dims, keepdim).to(dtype_of(x)), amax(from, dims, keepdim).to(dtype_of(x))};
} catch (const Error&) {
  rethrow_in("aminmax");
}

Tensor nansum(const Tensor& x, const Shape& dims, bool keepdim, std::optional<DType> dtype) try {
  require_tensor("nansum", x);
  const Tensor numbers = is_floating_point(dtype_of(x)) ? where(ne(x, x), 0.0, x) : x;
  return dtype ? sum(numbers, dims, keepdim, *dtype) : sum(numbers, dims, keepdim);
} catch (const Error&) {
  rethrow_in("nansum");
}

Tensor nanmean(const Tensor& x, const Shape& dims, bool keepdim) try {
  require_tensor("nanmean", x);
  if (!is_floating_point(dtype_of(x)))
    throw DTypeError(fmt::format("nanmean: x must be floating, found {}; {}", dtype_of(x),
                                 conversion_to(DType::f32)));
  if (const Widening wide{&x}) return wide.rounded(nanmean(wide(x), dims, keepdim));
  const Tensor count = sum(eq(x, x).to(DType::i64), dims, keepdim);
  return nansum(x, dims, keepdim) / count.to(dtype_of(x));
} catch (const Error&) {
  rethrow_in("nanmean");
}

Tensor count_nonzero(const Tensor& x, const Shape& dims) try {
  require_tensor("count_nonzero", x);
  const NoGrad guard;
  return sum(ne(x, 0).to(DType::i64), dims);
} catch (const Error&) {
  rethrow_in("count_nonzero");
}

std::pair<Tensor, Tensor> var_mean(const Tensor& x, const Shape& dims, int64_t correction,
                                   bool keepdim) try {
  return {var(x, dims, correction, keepdim), mean(x, dims, keepdim)};
} catch (const Error&) {
  rethrow_in("var_mean");
}
std::pair<Tensor, Tensor> std_mean(const Tensor& x, const Shape& dims, int64_t correction,
                                   bool keepdim) try {
  return {tenon::std(x, dims, correction, keepdim), mean(x, dims, keepdim)};
} catch (const Error&) {
  rethrow_in("std_mean");
}

Tensor dist(const Tensor& a, const Tensor& b, double p) try {
  if (const Autocasting cast{"dist", {&a, &b}}) return dist(cast(a), cast(b), p);
  require_defined("dist", {{"a", a}, {"b", b}});
  if (const Widening wide{&a, &b}) return wide.rounded(dist(wide(a), wide(b), p));
  return norm(a - b, p);
} catch (const Error&) {
  rethrow_in("dist");
}

Tensor renorm(const Tensor& x, double p, int64_t dim, double maxnorm) {
  if (const Autocasting cast{"renorm", {&x}}) return renorm(cast(x), p, dim, maxnorm);
  require_tensor("renorm", x);
  if (const Widening wide{&x}) return wide.rounded(renorm(wide(x), p, dim, maxnorm));
  if (!is_floating_point(dtype_of(x)))
    throw DTypeError(fmt::format("renorm: x must be floating, found {}; {}", dtype_of(x),
                                 conversion_to(DType::f32)));
  if (!(p > 0)) throw ValueError(fmt::format("renorm: p must be positive, found {}", p));
  if (!(maxnorm >= 0))
    throw ValueError(fmt::format("renorm: maxnorm must not be negative, found {}", maxnorm));
  const auto rank = static_cast<int64_t>(shape_of(x).size());
  if (rank < 2)
    throw ShapeError(
        fmt::format("renorm: x must have at least two dimensions, found shape {}", shape_of(x)));
  const int64_t d = wrap_dim(dim, rank, "renorm");
  Shape others;
  for (int64_t k = 0; k < rank; ++k)
    if (k != d) others.push_back(k);
  const Tensor size = norm(x, p, others, true);
  // PyTorch's small number, against a slice of zeros.
  const Tensor factor = where(gt(size, maxnorm), maxnorm / (size + 1e-7), 1.0);
  return x * factor;
}

}  // namespace tenon
