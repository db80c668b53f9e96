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

NLLLoss::NLLLoss(const NllLossOptions& o)
    : weight(o.weight), reduction(o.reduction), ignore_index(o.ignore_index) {}
BCELoss::BCELoss(const BinaryCrossEntropyOptions& o) : weight(o.weight), reduction(o.reduction) {}
BCEWithLogitsLoss::BCEWithLogitsLoss(const BinaryCrossEntropyWithLogitsOptions& o)
    : weight(o.weight), pos_weight(o.pos_weight), reduction(o.reduction) {}
HuberLoss::HuberLoss(Reduction r, double d) : reduction(r), delta(d) {
  require(delta > 0, "HuberLoss", "delta", delta, "above 0");
}
SmoothL1Loss::SmoothL1Loss(Reduction r, double b) : reduction(r), beta(b) {
  require(beta >= 0, "SmoothL1Loss", "beta", beta, "at least 0");
}
MultiMarginLoss::MultiMarginLoss(const MultiMarginLossOptions& o)
    : weight(o.weight), p(o.p), margin(o.margin), reduction(o.reduction) {
  require(p == 1 || p == 2, "MultiMarginLoss", "p", static_cast<double>(p), "1 or 2");
}

Tensor L1Loss::forward(const Tensor& input, const Tensor& target) const {
  return l1_loss(input, target, reduction);
}
Tensor NLLLoss::forward(const Tensor& log_probabilities, const Tensor& target) const {
  return nll_loss(log_probabilities, target, {weight, reduction, ignore_index});
}
Tensor BCELoss::forward(const Tensor& input, const Tensor& target) const {
  return binary_cross_entropy(input, target, {weight, reduction});
}
Tensor BCEWithLogitsLoss::forward(const Tensor& input, const Tensor& target) const {
  return binary_cross_entropy_with_logits(input, target, {weight, reduction, pos_weight});
}
Tensor KLDivLoss::forward(const Tensor& input, const Tensor& target) const {
  return kl_div(input, target, reduction, log_target);
}
Tensor HuberLoss::forward(const Tensor& input, const Tensor& target) const {
  return huber_loss(input, target, reduction, delta);
}
Tensor SmoothL1Loss::forward(const Tensor& input, const Tensor& target) const {
  return smooth_l1_loss(input, target, reduction, beta);
}
Tensor PoissonNLLLoss::forward(const Tensor& input, const Tensor& target) const {
  return poisson_nll_loss(input, target, options);
}
Tensor GaussianNLLLoss::forward(const Tensor& input, const Tensor& target,
                                const Tensor& var) const {
  return gaussian_nll_loss(input, target, var, options);
}
Tensor HingeEmbeddingLoss::forward(const Tensor& input, const Tensor& target) const {
  return hinge_embedding_loss(input, target, margin, reduction);
}
Tensor MarginRankingLoss::forward(const Tensor& input1, const Tensor& input2,
                                  const Tensor& target) const {
  return margin_ranking_loss(input1, input2, target, margin, reduction);
}
Tensor TripletMarginLoss::forward(const Tensor& anchor, const Tensor& positive,
                                  const Tensor& negative) const {
  return triplet_margin_loss(anchor, positive, negative, options);
}
Tensor CosineEmbeddingLoss::forward(const Tensor& input1, const Tensor& input2,
                                    const Tensor& target) const {
  return cosine_embedding_loss(input1, input2, target, margin, reduction);
}
Tensor MultiMarginLoss::forward(const Tensor& input, const Tensor& target) const {
  return multi_margin_loss(input, target, {p, margin, weight, reduction});
}
Tensor SoftMarginLoss::forward(const Tensor& input, const Tensor& target) const {
  return soft_margin_loss(input, target, reduction);
}
Tensor MultiLabelMarginLoss::forward(const Tensor& input, const Tensor& target) const {
  return multilabel_margin_loss(input, target, reduction);
}
Tensor MultiLabelSoftMarginLoss::forward(const Tensor& input, const Tensor& target) const {
  return multilabel_soft_margin_loss(input, target, weight, reduction);
}
Tensor CTCLoss::forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                        const Tensor& target_lengths) const {
  return ctc_loss(log_probs, targets, input_lengths, target_lengths, options);
}

}  // namespace tenon::nn
