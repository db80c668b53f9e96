#include <tenon/modules/loss.h>
#include <tenon/modules/repr.h>

namespace tenon::nn {

CrossEntropyLoss::CrossEntropyLoss(const CrossEntropyOptions& o)
    : weight(o.weight),
      reduction(o.reduction),
      ignore_index(o.ignore_index),
      label_smoothing(o.label_smoothing) {
  require(label_smoothing >= 0 && label_smoothing <= 1, "CrossEntropyLoss", "label_smoothing",
          label_smoothing, "from 0 to 1");
}

Tensor CrossEntropyLoss::forward(const Tensor& logits, const Tensor& target) const {
  return cross_entropy(logits, target,
                       {.weight = weight,
                        .reduction = reduction,
                        .ignore_index = ignore_index,
                        .label_smoothing = label_smoothing});
}

Tensor MSELoss::forward(const Tensor& input, const Tensor& target) const {
  return mse_loss(input, target, reduction);
}

}  // namespace tenon::nn
