// Losses that are made of other operators (core/ops/loss.h).
#include <tenon/core/ops/loss.h>

#include <tenon/core/ops/class_targets.h>
#include <tenon/core/ops/index.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduce.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/view.h>

namespace tenon {

namespace {

Tensor reduce(const Tensor& loss, const std::string& reduction) {
  if (reduction == "mean") return mean(loss);
  return reduction == "sum" ? sum(loss) : loss;
}

}  // namespace

Tensor nll_loss(const Tensor& log_probabilities, const Tensor& target, const NllLossOptions& options) {
  require_reduction("nll_loss", options.reduction);
  ClassTargets c = class_targets("nll_loss", log_probabilities, target, options.weight);
  DType dtype = dtype_of(c.scores);
  Tensor valid = ne(c.labels, options.ignore_index);
  Tensor safe = where(valid, c.labels, 0);  // any class: masked below
  Tensor loss = neg(squeeze(gather(c.scores, 1, unsqueeze(safe, 1)), 1));
  Tensor weight = options.weight.defined() ? index_select(options.weight, 0, safe) : Tensor();
  if (weight.defined()) loss = loss * weight;
  loss = where(valid, loss, 0.0);
  if (options.reduction == "none") return loss.reshape(c.loss_shape);
  if (options.reduction == "sum") return sum(loss);
  return sum(loss) / sum(weight.defined() ? where(valid, weight, 0.0) : valid.to(dtype));
}

Tensor mse_loss(const Tensor& x, const Tensor& y, const std::string& reduction) {
  require_defined("mse_loss", {&x, &y});
  require_reduction("mse_loss", reduction);
  return reduce(square(x - y), reduction);
}

Tensor l1_loss(const Tensor& x, const Tensor& y, const std::string& reduction) {
  require_defined("l1_loss", {&x, &y});
  require_reduction("l1_loss", reduction);
  return reduce(abs(x - y), reduction);
}

}  // namespace tenon
