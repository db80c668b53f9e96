#include <cmath>

#include <tenon/core/format.h>
#include <tenon/core/grad_mode.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/shape.h>
#include <tenon/modules/parametrizations.h>
#include <tenon/modules/repr.h>

namespace tenon::nn::detail {

namespace {

// Throws an IndexError unless the weight has the dimension; returns it counted from the front.
int64_t dimension_of(const char* layer, const Tensor& weight, int64_t dim) {
  const int64_t rank = weight.dim();
  if (dim < -rank || dim >= rank)
    throw IndexError(
        fmt::format("{}: dim is {}, but the weight has shape {}", layer, dim, weight.shape()));
  return dim < 0 ? dim + rank : dim;
}

// The length of each part along `dim`, with all dimensions.
Tensor lengths(const Tensor& v, std::optional<int64_t> dim) {
  if (!dim || *dim == -1) return norm(v);
  const int64_t kept = dimension_of("weight_norm", v, *dim);
  Shape others;
  for (int64_t d = 0; d < v.dim(); ++d)
    if (d != kept) others.push_back(d);
  return others.empty() ? abs(v) : norm(v, 2, others, true);
}

// The weight as a matrix, of which dimension `dim` is the first.
Tensor as_matrix(const Tensor& weight, int64_t dim) {
  const int64_t first = dimension_of("spectral_norm", weight, dim);
  return (first == 0 ? weight : weight.movedim(first, 0)).flatten(1);
}

// Steps of the power method, which change u and v.
void follow(const Tensor& matrix, Tensor u, Tensor v, int64_t steps, double eps) {
  const NoGrad guard;
  for (int64_t i = 0; i < steps; ++i) {
    u.copy_(normalize(mv(matrix, v), 2, 0, eps));
    v.copy_(normalize(mv(matrix.t(), u), 2, 0, eps));
  }
}

}  // namespace

void require_weight(const char* layer, const Tensor& weight) {
  if (!weight.defined())
    throw ValueError(fmt::format("{}: the layer has no weight at present", layer));
}

WeightAndLength split_length(const Tensor& weight, std::optional<int64_t> dim) {
  const NoGrad guard;
  WeightAndLength parts;
  parts.original0 = Parameter(lengths(weight, dim), weight.requires_grad());
  parts.original1 = Parameter(weight, weight.requires_grad());
  return parts;
}

Tensor weight_of(const WeightAndLength& parts, std::optional<int64_t> dim) {
  return parts.original1 * (parts.original0 / lengths(parts.original1, dim));
}

void require_spectral(const Tensor& weight, int64_t steps, double eps, int64_t dim) {
  require(steps >= 1, "spectral_norm", "n_power_iterations", static_cast<double>(steps),
          "at least 1");
  require(eps > 0 && std::isfinite(eps), "spectral_norm", "eps", eps, "above 0 and finite");
  dimension_of("spectral_norm", weight, dim);
}

WeightAndVectors with_vectors(const Tensor& weight, int64_t dim, double eps) {
  const NoGrad guard;
  WeightAndVectors parts;
  parts.original = Parameter(weight, weight.requires_grad());
  if (weight.dim() < 2) return parts;
  const Tensor matrix = as_matrix(weight.detach(), dim);
  const auto random = [&](int64_t n) {
    return normalize(randn({n}, {.dtype = weight.dtype(), .device = weight.device()}), 2, 0, eps);
  };
  parts.vectors.left = Buffer(random(matrix.size(0)));
  parts.vectors.right = Buffer(random(matrix.size(1)));
  follow(matrix, parts.vectors.left, parts.vectors.right, 15, eps);
  return parts;
}

Tensor weight_of(WeightAndVectors& parts, int64_t steps, double eps, int64_t dim) {
  const Tensor& weight = parts.original;
  if (weight.dim() < 2) return normalize(weight, 2, 0, eps);
  const Tensor matrix = as_matrix(weight, dim);
  if (parts.vectors.training) follow(matrix, parts.vectors.left, parts.vectors.right, steps, eps);
  // The next call changes the buffers before this one may have gone back.
  const Tensor u = parts.vectors.left.clone(), v = parts.vectors.right.clone();
  return weight / dot(u, mv(matrix, v));
}

}  // namespace tenon::nn::detail
