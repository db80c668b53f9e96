#include <tenon/core/ops/loss.h>
#include <tenon/modules/loss.h>
#include <tenon/modules/repr.h>

namespace tenon::nn {

namespace {

void require_reduction(const std::string& reduction, const char* layer) {
  if (reduction != "mean" && reduction != "sum" && reduction != "none")
    throw ValueError(std::string(layer) + ": reduction is \"" + reduction +
                     "\"; it has to be \"mean\", \"sum\" or \"none\"");
}

}  // namespace

CrossEntropyLoss::CrossEntropyLoss(const CrossEntropyLossOptions& o)
    : weight(o.weight),
      reduction(o.reduction),
      ignore_index(o.ignore_index),
      label_smoothing(o.label_smoothing) {
  require(label_smoothing >= 0 && label_smoothing <= 1, "CrossEntropyLoss", "label_smoothing",
          label_smoothing, "from 0 to 1");
  require_reduction(reduction, "CrossEntropyLoss");
}

Tensor CrossEntropyLoss::forward(const Tensor& logits, const Tensor& target) const {
  CrossEntropyOptions o;
  o.weight = weight;
  o.reduction = reduction;
  o.ignore_index = ignore_index;
  o.label_smoothing = label_smoothing;
  return cross_entropy(logits, target, o);
}

MSELoss::MSELoss(std::string r) : reduction(std::move(r)) {
  require_reduction(reduction, "MSELoss");
}

Tensor MSELoss::forward(const Tensor& input, const Tensor& target) const {
  return mse_loss(input, target, reduction);
}

}  // namespace tenon::nn
