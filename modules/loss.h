// Losses as layers. Each calls the function of core/ops/loss.h that its comment names, whose
// shapes, dtypes, warnings and errors it has. The result is a scalar, or for Reduction::none has a
// value for each element or row. A weight is a buffer: it is saved and moved with the layer.
#pragma once

#include <tenon/core/ops/loss.h>
#include <tenon/modules/module.h>

namespace tenon::nn {

// Returns cross_entropy(logits, target) for logits (N, C), (N, C, d1, …) or (C) and labels (N),
// (N, d1, …) or (), or probabilities of the shape of the logits. The constructor throws a
// ValueError for a label_smoothing outside [0, 1].
struct TENON_API CrossEntropyLoss final : Module<CrossEntropyLoss> {
  CrossEntropyLoss(const CrossEntropyOptions& options = {});
  Tensor forward(const Tensor& logits, const Tensor& target) const;
  void fields(FieldVisitor& v) { v("weight", weight); }

  Buffer weight;  // undefined if none was given
  Reduction reduction;
  int64_t ignore_index;
  double label_smoothing;
};

// Returns mse_loss: the squared differences (input - target)^2 of tensors whose shapes broadcast.
struct TENON_API MSELoss final : Module<MSELoss> {
  MSELoss(Reduction reduction = Reduction::mean) : reduction(reduction) {}
  Tensor forward(const Tensor& input, const Tensor& target) const;
  void fields(FieldVisitor&) {}

  Reduction reduction;
};

// Returns l1_loss: the absolute differences |input - target| of tensors whose shapes broadcast.
struct TENON_API L1Loss final : Module<L1Loss> {
  L1Loss(Reduction reduction = Reduction::mean) : reduction(reduction) {}
  Tensor forward(const Tensor& input, const Tensor& target) const;
  void fields(FieldVisitor&) {}

  Reduction reduction;
};

// Returns nll_loss: the negative log likelihood of labels, for log-probabilities (N, C),
// (N, C, d1, …) or (C) and labels (N), (N, d1, …) or ().
struct TENON_API NLLLoss final : Module<NLLLoss> {
  NLLLoss(const NllLossOptions& options = {});
  Tensor forward(const Tensor& log_probabilities, const Tensor& target) const;
  void fields(FieldVisitor& v) { v("weight", weight); }

  Buffer weight;  // undefined if none was given
  Reduction reduction;
  int64_t ignore_index;
};

// Returns binary_cross_entropy of probabilities and targets of one shape, both in [0, 1].
struct TENON_API BCELoss final : Module<BCELoss> {
  BCELoss(const BinaryCrossEntropyOptions& options = {});
  Tensor forward(const Tensor& input, const Tensor& target) const;
  void fields(FieldVisitor& v) { v("weight", weight); }

  Buffer weight;  // undefined if none was given
  Reduction reduction;
};

// Returns binary_cross_entropy_with_logits of logits and targets in [0, 1] of one shape.
struct TENON_API BCEWithLogitsLoss final : Module<BCEWithLogitsLoss> {
  BCEWithLogitsLoss(const BinaryCrossEntropyWithLogitsOptions& options = {});
  Tensor forward(const Tensor& input, const Tensor& target) const;
  void fields(FieldVisitor& v) { v("weight", weight)("pos_weight", pos_weight); }

  Buffer weight, pos_weight;  // each undefined if it was not given
  Reduction reduction;
};

// Returns kl_div: the Kullback-Leibler divergence of log-probabilities `input` from a target of
// probabilities, or of their logarithms if log_target is true; the shapes broadcast.
struct TENON_API KLDivLoss final : Module<KLDivLoss> {
  KLDivLoss(Reduction reduction = Reduction::mean, bool log_target = false)
      : reduction(reduction), log_target(log_target) {}
  Tensor forward(const Tensor& input, const Tensor& target) const;
  void fields(FieldVisitor&) {}

  Reduction reduction;
  bool log_target;
};

// Returns huber_loss: the difference of input and target, whose shapes broadcast, in a form that is
// quadratic up to delta and linear beyond (Huber 1964). The constructor throws a ValueError unless
// delta is above 0.
struct TENON_API HuberLoss final : Module<HuberLoss> {
  HuberLoss(Reduction reduction = Reduction::mean, double delta = 1.0);
  Tensor forward(const Tensor& input, const Tensor& target) const;
  void fields(FieldVisitor&) {}

  Reduction reduction;
  double delta;
};

// Returns smooth_l1_loss: HuberLoss with delta = beta, divided by beta, or L1Loss where beta is 0.
// The shapes of input and target broadcast. The constructor throws a ValueError if beta is below 0.
struct TENON_API SmoothL1Loss final : Module<SmoothL1Loss> {
  SmoothL1Loss(Reduction reduction = Reduction::mean, double beta = 1.0);
  Tensor forward(const Tensor& input, const Tensor& target) const;
  void fields(FieldVisitor&) {}

  Reduction reduction;
  double beta;
};

// Returns poisson_nll_loss: the negative log likelihood of counts `target`, given their rates or,
// with log_input, the logarithms of these; the shapes broadcast.
struct TENON_API PoissonNLLLoss final : Module<PoissonNLLLoss> {
  PoissonNLLLoss(const PoissonNllLossOptions& options = {}) : options(options) {}
  Tensor forward(const Tensor& input, const Tensor& target) const;
  void fields(FieldVisitor&) {}

  PoissonNllLossOptions options;
};

// Returns gaussian_nll_loss: the negative log likelihood of targets under normal distributions of
// mean `input` and variance `var`, which has the input's shape, the same with a last dimension of
// size 1, or lacks the last dimension.
struct TENON_API GaussianNLLLoss final : Module<GaussianNLLLoss> {
  GaussianNLLLoss(const GaussianNllLossOptions& options = {}) : options(options) {}
  Tensor forward(const Tensor& input, const Tensor& target, const Tensor& var) const;
  void fields(FieldVisitor&) {}

  GaussianNllLossOptions options;
};

// Returns hinge_embedding_loss of distances and targets of 1 and -1, whose shapes broadcast.
struct TENON_API HingeEmbeddingLoss final : Module<HingeEmbeddingLoss> {
  HingeEmbeddingLoss(double margin = 1.0, Reduction reduction = Reduction::mean)
      : margin(margin), reduction(reduction) {}
  Tensor forward(const Tensor& input, const Tensor& target) const;
  void fields(FieldVisitor&) {}

  double margin;
  Reduction reduction;
};

// Returns margin_ranking_loss of two scores: where the target is 1 the first is to be larger by the
// margin, where it is -1 the second. The shapes broadcast.
struct TENON_API MarginRankingLoss final : Module<MarginRankingLoss> {
  MarginRankingLoss(double margin = 0.0, Reduction reduction = Reduction::mean)
      : margin(margin), reduction(reduction) {}
  Tensor forward(const Tensor& input1, const Tensor& input2, const Tensor& target) const;
  void fields(FieldVisitor&) {}

  double margin;
  Reduction reduction;
};

// Returns triplet_margin_loss of rows (…, d) of one shape: each anchor is to be nearer to its
// positive than to its negative, by a margin. The result has a value for each row.
struct TENON_API TripletMarginLoss final : Module<TripletMarginLoss> {
  TripletMarginLoss(const TripletMarginLossOptions& options = {}) : options(options) {}
  Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative) const;
  void fields(FieldVisitor&) {}

  TripletMarginLossOptions options;
};

// Returns cosine_embedding_loss of the angle between the rows of two tensors (n, d) and targets (n)
// of 1 and -1, or of tensors (d) and a target ().
struct TENON_API CosineEmbeddingLoss final : Module<CosineEmbeddingLoss> {
  CosineEmbeddingLoss(double margin = 0.0, Reduction reduction = Reduction::mean)
      : margin(margin), reduction(reduction) {}
  Tensor forward(const Tensor& input1, const Tensor& input2, const Tensor& target) const;
  void fields(FieldVisitor&) {}

  double margin;
  Reduction reduction;
};

// Returns multi_margin_loss, the multi-class hinge loss of scores (n, C) and labels (n), or (C) and
// (). The constructor throws a ValueError unless p is 1 or 2.
struct TENON_API MultiMarginLoss final : Module<MultiMarginLoss> {
  MultiMarginLoss(const MultiMarginLossOptions& options = {});
  Tensor forward(const Tensor& input, const Tensor& target) const;
  void fields(FieldVisitor& v) { v("weight", weight); }

  Buffer weight;  // undefined if none was given
  int64_t p;
  double margin;
  Reduction reduction;
};

// Returns soft_margin_loss, the logistic loss of scores and targets of 1 and -1, whose shapes
// broadcast.
struct TENON_API SoftMarginLoss final : Module<SoftMarginLoss> {
  SoftMarginLoss(Reduction reduction = Reduction::mean) : reduction(reduction) {}
  Tensor forward(const Tensor& input, const Tensor& target) const;
  void fields(FieldVisitor&) {}

  Reduction reduction;
};

// Returns multilabel_margin_loss, the hinge loss of scores and several labels for each row, both of
// shape (n, C) or (C).
struct TENON_API MultiLabelMarginLoss final : Module<MultiLabelMarginLoss> {
  MultiLabelMarginLoss(Reduction reduction = Reduction::mean) : reduction(reduction) {}
  Tensor forward(const Tensor& input, const Tensor& target) const;
  void fields(FieldVisitor&) {}

  Reduction reduction;
};

// Returns multilabel_soft_margin_loss: the binary cross entropy of logits and targets of shape
// (…, C), averaged over the classes; a value for each row.
struct TENON_API MultiLabelSoftMarginLoss final : Module<MultiLabelSoftMarginLoss> {
  MultiLabelSoftMarginLoss(const Tensor& weight = {}, Reduction reduction = Reduction::mean)
      : weight(weight), reduction(reduction) {}
  Tensor forward(const Tensor& input, const Tensor& target) const;
  void fields(FieldVisitor& v) { v("weight", weight); }

  Buffer weight;  // undefined if none was given
  Reduction reduction;
};

// Returns ctc_loss, the connectionist temporal classification loss (Graves et al. 2006) of
// log-probabilities (t, n, C) or (t, C) and labels (n, s), or (sum of target_lengths), of which the
// lengths (n) say how much counts.
struct TENON_API CTCLoss final : Module<CTCLoss> {
  CTCLoss(const CtcLossOptions& options = {}) : options(options) {}
  Tensor forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                 const Tensor& target_lengths) const;
  void fields(FieldVisitor&) {}

  CtcLossOptions options;
};

}  // namespace tenon::nn
