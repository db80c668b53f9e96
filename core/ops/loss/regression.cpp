// Losses of numbers: distances, and likelihoods of counts and of normal distributions
// (core/ops/loss.h).
#include <cmath>
#include <numbers>

#include <tenon/core/base/number_text.h>
#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/dispatch/widening.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/loss.h>
#include <tenon/core/ops/loss/reduce_loss.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

// With z = d within [-delta, delta], z (d - z / 2): half the square inside, linear outside.
Tensor huber(const Tensor& difference, double delta) {
  const Tensor z = clamp(difference, -delta, delta);
  return z * (difference - z * 0.5);
}

// The variance with a dimension for each of the input's.
Tensor aligned_variance(const Tensor& input, const Tensor& var) {
  const Shape &shape = shape_of(input), &found = shape_of(var);
  Shape rows = shape;
  if (!rows.empty()) rows.erase(rows.size() - 1);
  if (found == rows && !(found == shape)) return unsqueeze(var, -1);
  Shape one = rows;
  one.push_back(1);
  if (!(found == shape) && !(found == one))
    throw ShapeError(fmt::format(
        "gaussian_nll_loss: an input of shape {} needs a variance of shape {}, {} or {}, found {}",
        shape, shape, one, rows, found));
  return var;
}

}  // namespace

Tensor huber_loss(const Tensor& x, const Tensor& y, Reduction reduction, double delta,
                  const Tensor& weight) try {
  if (const Autocasting cast{"huber_loss", {&x, &y}})
    return huber_loss(cast(x), cast(y), reduction, delta, weight);
  require_defined("huber_loss", {{"x", x}, {"y", y}});
  if (const Widening wide{&x, &y, &weight})
    return wide.rounded(huber_loss(wide(x), wide(y), reduction, delta, wide(weight)));
  if (!(delta > 0))
    throw ValueError(
        fmt::format("huber_loss: delta must be above 0, found {}", number_text(delta)));
  warn_of_broadcasting("huber_loss", x, y);
  return reduce_loss("huber_loss", weighted_loss("huber_loss", huber(x - y, delta), x, weight),
                     reduction);
} catch (const Error&) {
  rethrow_in("huber_loss");
}

Tensor smooth_l1_loss(const Tensor& x, const Tensor& y, Reduction reduction, double beta) try {
  if (const Autocasting cast{"smooth_l1_loss", {&x, &y}})
    return smooth_l1_loss(cast(x), cast(y), reduction, beta);
  require_defined("smooth_l1_loss", {{"x", x}, {"y", y}});
  if (const Widening wide{&x, &y})
    return wide.rounded(smooth_l1_loss(wide(x), wide(y), reduction, beta));
  if (!(beta >= 0))
    throw ValueError(
        fmt::format("smooth_l1_loss: beta must not be below 0, found {}", number_text(beta)));
  warn_of_broadcasting("smooth_l1_loss", x, y);
  const Tensor difference = x - y;
  return reduce_loss("smooth_l1_loss", beta == 0 ? abs(difference) : huber(difference, beta) / beta,
                     reduction);
} catch (const Error&) {
  rethrow_in("smooth_l1_loss");
}

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target,
                        const PoissonNllLossOptions& options) try {
  if (const Autocasting cast{"poisson_nll_loss", {&input, &target}})
    return poisson_nll_loss(cast(input), cast(target), options);
  require_defined("poisson_nll_loss", {{"input", input}, {"target", target}});
  if (const Widening wide{&input, &target})
    return wide.rounded(poisson_nll_loss(wide(input), wide(target), options));
  Tensor loss =
      options.log_input ? exp(input) - target * input : input - target * log(input + options.eps);
  if (options.full) {
    const Tensor few = le(target, 1.0), t = where(few, 1.0, target);
    const Tensor stirling = t * log(t) - t + log(t * (2 * std::numbers::pi)) * 0.5;
    loss = loss + where(few, 0.0, stirling);
  }
  return reduce_loss("poisson_nll_loss", loss, options.reduction);
} catch (const Error&) {
  rethrow_in("poisson_nll_loss");
}

Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var,
                         const GaussianNllLossOptions& options) try {
  if (const Autocasting cast{"gaussian_nll_loss", {&input, &target, &var}})
    return gaussian_nll_loss(cast(input), cast(target), cast(var), options);
  require_defined("gaussian_nll_loss", {{"input", input}, {"target", target}, {"var", var}});
  if (const Widening wide{&input, &target, &var})
    return wide.rounded(gaussian_nll_loss(wide(input), wide(target), wide(var), options));
  if (!(options.eps > 0))
    throw ValueError(
        fmt::format("gaussian_nll_loss: eps must be above 0, found {}", number_text(options.eps)));
  const Tensor given = aligned_variance(input, var), known = given.detach();
  // As large as eps, with the gradient of the variance itself.
  const Tensor variance = given + (maximum(known, options.eps) - known);
  Tensor loss = (log(variance) + square(input - target) / variance) * 0.5;
  if (options.full) loss = loss + 0.5 * std::log(2 * std::numbers::pi);
  return reduce_loss("gaussian_nll_loss", loss, options.reduction);
} catch (const Error&) {
  rethrow_in("gaussian_nll_loss");
}

}  // namespace tenon
