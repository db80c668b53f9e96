// Losses that are made of other operators (core/ops/loss.h).
#include <mutex>
#include <set>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/log.h>
#include <tenon/core/base/module_path.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/dispatch/widening.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/loss.h>
#include <tenon/core/ops/loss/class_targets.h>
#include <tenon/core/ops/loss/reduce_loss.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

void require_reduction(const char* op, Reduction reduction) {
  if (reduction == Reduction::batchmean)
    throw ValueError(fmt::format(
        "{}: the reduction \"batchmean\" is for kl_div alone; use none, mean or sum", op));
}

Tensor reduce_loss(const char* op, const Tensor& loss, Reduction reduction) {
  require_reduction(op, reduction);
  if (reduction == Reduction::mean) return mean(loss);
  return reduction == Reduction::sum ? sum(loss) : loss;
}

// (4, 1) and (4) broadcast to (4, 4), which is rarely meant. The warning comes once for each pair
// of shapes, as long as the pairs are few.
void warn_of_broadcasting(const char* op, const Tensor& x, const Tensor& y) {
  if (shape_of(x) == shape_of(y)) return;
  struct Said {
    ForkMutex mutex{ForkOrder::tables};
    std::set<std::string> pairs;
  };
  static constinit NeverDestroyed<Said> kept;  // a loss may be computed while the process ends
  std::string what =
      fmt::format("{}: the target has shape {}, but the input {}", op, shape_of(y), shape_of(x));
  {
    Said& said = kept.get();
    std::lock_guard lock(said.mutex);
    if (said.pairs.size() >= 100 || !said.pairs.insert(what).second) return;
  }
  log_message(TN_LOG_WARNING, "tenon",
              fmt::format("{}; they are broadcast to {}, which is rarely meant: give both the same "
                          "shape, for example by .reshape(){}",
                          what, broadcast_shapes(shape_of(x), shape_of(y), op), path_suffix()));
}

const char* name_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::mean:
      return "mean";
    case Reduction::sum:
      return "sum";
    case Reduction::batchmean:
      return "batchmean";
    default:
      return "none";
  }
}

Tensor nll_loss(const Tensor& log_probabilities, const Tensor& target,
                const NllLossOptions& options) try {
  if (const Autocasting cast{"nll_loss", {&log_probabilities}}) {
    auto inner = options;
    inner.weight = cast(options.weight);
    return nll_loss(cast(log_probabilities), target, inner);
  }
  require_reduction("nll_loss", options.reduction);
  require_tensor("nll_loss", log_probabilities, "log_probabilities");
  if (const Widening wide{&log_probabilities, &options.weight}) {
    auto inner = options;
    inner.weight = wide(options.weight);
    return wide.rounded(nll_loss(wide(log_probabilities), target, inner));
  }
  const PartPath part("nll_loss");  // a label out of range is found by an operator that is queued
  ClassTargets c = class_targets("nll_loss", log_probabilities, target, options.weight);
  DType dtype = dtype_of(c.scores);
  Tensor valid = ne(c.labels, options.ignore_index);
  // Any class will do for rows that are ignored, because they are masked below. Without classes
  // there is one of zeros to take, and labels that count lie behind it.
  const bool none = shape_of(c.scores)[1] == 0;
  Tensor safe = where(valid, none ? ones_like(c.labels) : c.labels, 0);
  Tensor scores =
      none ? zeros({shape_of(c.scores)[0], 1}, {.dtype = dtype, .device = c.scores.device()})
           : c.scores;
  Tensor loss = neg(squeeze(gather(scores, 1, unsqueeze(safe, 1)), 1));
  Tensor weight = options.weight.defined() ? index_select(options.weight, 0, safe) : Tensor();
  if (weight.defined()) loss = loss * weight;
  loss = where(valid, loss, 0.0);
  if (options.reduction == Reduction::none) return loss.reshape(c.loss_shape);
  if (options.reduction == Reduction::sum) return sum(loss);
  return sum(loss) / sum(weight.defined() ? where(valid, weight, 0.0) : valid.to(dtype));
} catch (const Error&) {
  rethrow_in("nll_loss");
}

Tensor weighted_loss(const char* op, const Tensor& loss, const Tensor& x, const Tensor& weight) {
  if (!weight.defined()) return loss;
  if (!(shape_of(weight) == shape_of(x)))
    throw ShapeError(fmt::format("{}: the weight has shape {}, but must have that of the input, {}",
                                 op, shape_of(weight), shape_of(x)));
  return loss * weight;
}

}  // namespace tenon
