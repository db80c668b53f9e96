// Losses of numbers that are counts or have a normal distribution: their likelihoods
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
  const Tensor variance = where(lt(known, options.eps), (given - known) + options.eps, given);
  Tensor loss = (log(variance) + square(input - target) / variance) * 0.5;
  if (options.full) loss = loss + 0.5 * std::log(2 * std::numbers::pi);
  return reduce_loss("gaussian_nll_loss", loss, options.reduction);
} catch (const Error&) {
  rethrow_in("gaussian_nll_loss");
}

}  // namespace tenon
