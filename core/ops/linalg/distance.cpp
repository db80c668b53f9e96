// Distances and angles, and how variables depend on each other (core/ops/linalg.h).
#include <cmath>
#include <limits>

#include <tenon/core/base/number_text.h>
#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/dispatch/widening.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

// Returns x, or its values in f32 if they are integers.
Tensor floating(const Tensor& x) { return is_floating_point(dtype_of(x)) ? x : x.to(f32); }

Shape with_last(Shape batch, int64_t rows, int64_t cols) {
  batch.push_back(rows);
  batch.push_back(cols);
  return batch;
}

// |a|² + |b|² - 2 a·b as one product of matrices: (-2 a, |a|², 1) times (b, 1, |b|²).
Tensor euclidean_by_products(const Tensor& a, const Tensor& b) {
  const Tensor squares_a = sum(square(a), -1, true), squares_b = sum(square(b), -1, true);
  const Tensor left = cat({a * -2, squares_a, ones_like(squares_a)}, -1),
               right = cat({b, ones_like(squares_b), squares_b}, -1);
  return sqrt_with_zero_gradient(maximum(matmul(left, transpose(right, -1, -2)), 0));
}

bool by_products(std::string_view mode, int64_t rows_a, int64_t rows_b) {
  if (mode == "use_mm_for_euclid_dist") return true;
  if (mode == "donot_use_mm_for_euclid_dist") return false;
  if (mode == "use_mm_for_euclid_dist_if_necessary") return rows_a > 25 || rows_b > 25;
  throw ValueError(
      fmt::format("cdist: compute_mode must be \"use_mm_for_euclid_dist_if_necessary\", "
                  "\"use_mm_for_euclid_dist\" or \"donot_use_mm_for_euclid_dist\", found \"{}\"",
                  mode));
}

Tensor at_least(const Tensor& x, double least) { return clamp(x, least); }

}  // namespace

Tensor cdist(const Tensor& a, const Tensor& b, double p, std::string_view compute_mode) try {
  if (const Autocasting cast{"cdist", {&a, &b}}) return cdist(cast(a), cast(b), p, compute_mode);
  require_defined("cdist", {{"a", a}, {"b", b}});
  if (const Widening wide{&a, &b}) return wide.rounded(cdist(wide(a), wide(b), p, compute_mode));
  const Shape &sa = shape_of(a), &sb = shape_of(b);
  if (sa.size() < 2 || sb.size() < 2 || sa.back() != sb.back())
    throw ShapeError(fmt::format(
        "cdist: expects rows of one length, (…, m, k) and (…, n, k), found {} and {}", sa, sb));
  if (!(p >= 0))
    throw ValueError(fmt::format("cdist: p must not be negative, found {}", number_text(p)));
  const bool products = by_products(compute_mode, sa[-2], sb[-2]) && p == 2;
  const Tensor left = floating(a), right = floating(b);
  const DType t = result_type(left, right);
  const Shape batch = broadcast_shapes(Shape(sa.span().first(sa.size() - 2)),
                                       Shape(sb.span().first(sb.size() - 2)), "cdist");
  const Tensor x = expand(left.to(t), with_last(batch, sa[-2], sa[-1])),
               y = expand(right.to(t), with_last(batch, sb[-2], sb[-1]));
  if (products && sa.back() > 0) return euclidean_by_products(x, y);
  const Tensor difference = unsqueeze(x, -2) - unsqueeze(y, -3);
  // The norm of an empty vector is 0, and only that of infinite p needs an element.
  return norm(difference, sa.back() == 0 ? 2 : p, -1);
} catch (const Error&) {
  rethrow_in("cdist");
}

Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p, double eps, bool keepdim) try {
  if (const Autocasting cast{"pairwise_distance", {&a, &b}})
    return pairwise_distance(cast(a), cast(b), p, eps, keepdim);
  require_defined("pairwise_distance", {{"a", a}, {"b", b}});
  if (const Widening wide{&a, &b})
    return wide.rounded(pairwise_distance(wide(a), wide(b), p, eps, keepdim));
  return norm(floating(a) - floating(b) + eps, p, -1, keepdim);
} catch (const Error&) {
  rethrow_in("pairwise_distance");
}

Tensor cosine_similarity(const Tensor& a, const Tensor& b, int64_t dim, double eps) try {
  if (const Autocasting cast{"cosine_similarity", {&a, &b}})
    return cosine_similarity(cast(a), cast(b), dim, eps);
  require_defined("cosine_similarity", {{"a", a}, {"b", b}});
  if (const Widening wide{&a, &b})
    return wide.rounded(cosine_similarity(wide(a), wide(b), dim, eps));
  const Shape shape = broadcast_shapes(shape_of(a), shape_of(b), "cosine_similarity");
  const Tensor x = expand(floating(a), shape), y = expand(floating(b), shape);
  const int64_t d = wrap_dim_of(x, dim, "cosine_similarity");
  return sum(x / at_least(norm(x, 2, d, true), eps) * (y / at_least(norm(y, 2, d, true), eps)), d);
} catch (const Error&) {
  rethrow_in("cosine_similarity");
}

Tensor normalize(const Tensor& x, double p, const Shape& dim, double eps) try {
  require_tensor("normalize", x);
  if (const Widening wide{&x}) return wide.rounded(normalize(wide(x), p, dim, eps));
  const Tensor value = floating(x);
  return value / at_least(norm(value, p, dim, true), eps);
} catch (const Error&) {
  rethrow_in("normalize");
}

namespace {

void check_weights(const Tensor& weights, const char* name, int64_t observations, bool whole) {
  if (!weights.defined()) return;
  if (shape_of(weights) != Shape{observations})
    throw ShapeError(
        fmt::format("cov: {} must have shape ({},), one for each observation, found {}", name,
                    observations, shape_of(weights)));
  if (whole ? !is_integer(dtype_of(weights)) : !is_floating_point(dtype_of(weights)))
    throw DTypeError(fmt::format("cov: {} must be {}, found {}", name,
                                 whole ? "integers" : "floating", dtype_of(weights)));
}

}  // namespace

Tensor cov(const Tensor& x, int64_t correction, const Tensor& fweights, const Tensor& aweights) {
  require_tensor("cov", x);
  if (const Widening wide{&x}) return wide.rounded(cov(wide(x), correction, fweights, aweights));
  if (shape_of(x).size() > 2)
    throw ShapeError(
        fmt::format("cov: expects a matrix (variables, observations) or a vector, "
                    "found shape {}",
                    shape_of(x)));
  const Tensor rows = atleast_2d(floating(x));
  const int64_t observations = shape_of(rows)[1];
  check_weights(fweights, "fweights", observations, true);
  check_weights(aweights, "aweights", observations, false);
  const DType t = dtype_of(rows);
  Tensor weights, centered, divisor;
  if (fweights.defined()) weights = fweights.to(t);
  if (aweights.defined()) weights = weights.defined() ? weights * aweights.to(t) : aweights.to(t);
  if (weights.defined()) {
    const Tensor total = sum(weights);
    centered = rows - sum(rows * weights, 1, true) / total;
    const double c = static_cast<double>(correction);
    divisor = aweights.defined() && correction != 0
                  ? total - sum(weights * aweights.to(t)) / total * c
                  : total - c;
  } else {
    centered = rows - mean(rows, 1, true);
    divisor = constant(static_cast<double>(observations) - static_cast<double>(correction), t,
                       rows.device());
  }
  const Tensor weighted = weights.defined() ? centered * weights : centered;
  const Tensor y = matmul(centered, transpose(weighted, 0, 1)) / maximum(divisor, 0);
  return y.numel() == 1 ? reshape(y, {}) : y;
}

Tensor corrcoef(const Tensor& x) try {
  require_tensor("corrcoef", x);
  if (const Widening wide{&x}) return wide.rounded(corrcoef(wide(x)));
  const Tensor c = cov(x);
  if (shape_of(c).empty()) return c / c;
  const Tensor deviations = sqrt(diagonal(c));
  return clamp(c / unsqueeze(deviations, 1) / deviations, -1, 1);
} catch (const Error&) {
  rethrow_in("corrcoef");
}

}  // namespace tenon
