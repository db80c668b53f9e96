// Losses as layers.
#pragma once

#include <tenon/core/ops/loss.h>
#include <tenon/modules/module.h>

namespace tenon::nn {

// Returns the cross entropy of logits and a target; options, shapes, dtypes and errors are those of
// tenon::cross_entropy. The weight is a buffer: it is saved and moved with the layer. The
// constructor throws a ValueError for a label_smoothing outside [0, 1].
struct TENON_API CrossEntropyLoss final : Module<CrossEntropyLoss> {
  CrossEntropyLoss(const CrossEntropyOptions& options = {});
  Tensor forward(const Tensor& logits, const Tensor& target) const;
  void fields(FieldVisitor& v) { v("weight", weight); }

  Buffer weight;  // undefined if none was given
  Reduction reduction;
  int64_t ignore_index;
  double label_smoothing;
};

// Returns the squared differences (input - target)^2; shapes, warnings and errors are those of
// tenon::mse_loss.
struct TENON_API MSELoss final : Module<MSELoss> {
  MSELoss(Reduction reduction = Reduction::mean) : reduction(reduction) {}
  Tensor forward(const Tensor& input, const Tensor& target) const;
  void fields(FieldVisitor&) {}

  Reduction reduction;
};

// The losses below call the function of tenon of the same name, with its shapes, warnings and
// errors. A weight is a buffer: it is saved and moved with the layer.

// Returns the absolute differences |input - target|.
struct TENON_API L1Loss final : Module<L1Loss> {
  L1Loss(Reduction reduction = Reduction::mean) : reduction(reduction) {}
  Tensor forward(const Tensor& input, const Tensor& target) const;
  void fields(FieldVisitor&) {}

  Reduction reduction;
};

// Returns the negative log likelihood of log-probabilities and labels.
struct TENON_API NLLLoss final : Module<NLLLoss> {
  NLLLoss(const NllLossOptions& options = {});
  Tensor forward(const Tensor& log_probabilities, const Tensor& target) const;
  void fields(FieldVisitor& v) { v("weight", weight); }

  Buffer weight;  // undefined if none was given
  Reduction reduction;
  int64_t ignore_index;
};

// Returns the binary cross entropy of probabilities.
struct TENON_API BCELoss final : Module<BCELoss> {
  BCELoss(const BinaryCrossEntropyOptions& options = {});
  Tensor forward(const Tensor& input, const Tensor& target) const;
  void fields(FieldVisitor& v) { v("weight", weight); }

  Buffer weight;  // undefined if none was given
  Reduction reduction;
};

// Returns the binary cross entropy of logits.
struct TENON_API BCEWithLogitsLoss final : Module<BCEWithLogitsLoss> {
  BCEWithLogitsLoss(const BinaryCrossEntropyWithLogitsOptions& options = {});
  Tensor forward(const Tensor& input, const Tensor& target) const;
  void fields(FieldVisitor& v) { v("weight", weight)("pos_weight", pos_weight); }

  Buffer weight, pos_weight;  // undefined if none was given
  Reduction reduction;
};

// Returns the Kullback-Leibler divergence of log-probabilities from a target.
struct TENON_API KLDivLoss final : Module<KLDivLoss> {
  KLDivLoss(Reduction reduction = Reduction::mean, bool log_target = false)
      : reduction(reduction), log_target(log_target) {}
  Tensor forward(const Tensor& input, const Tensor& target) const;
  void fields(FieldVisitor&) {}

  Reduction reduction;
  bool log_target;
};

// Returns a loss that is quadratic up to delta and linear beyond. The constructor throws a
// ValueError unless delta is above 0.
struct TENON_API HuberLoss final : Module<HuberLoss> {
  HuberLoss(Reduction reduction = Reduction::mean, double delta = 1.0);
  Tensor forward(const Tensor& input, const Tensor& target) const;
  void fields(FieldVisitor&) {}

  Reduction reduction;
  double delta;
};

// Returns HuberLoss divided by beta. The constructor throws a ValueError if beta is below 0.
struct TENON_API SmoothL1Loss final : Module<SmoothL1Loss> {
  SmoothL1Loss(Reduction reduction = Reduction::mean, double beta = 1.0);
  Tensor forward(const Tensor& input, const Tensor& target) const;
  void fields(FieldVisitor&) {}

  Reduction reduction;
  double beta;
};

// Returns the negative log likelihood of counts.
struct TENON_API PoissonNLLLoss final : Module<PoissonNLLLoss> {
  PoissonNLLLoss(const PoissonNllLossOptions& options = {}) : options(options) {}
  Tensor forward(const Tensor& input, const Tensor& target) const;
  void fields(FieldVisitor&) {}

  PoissonNllLossOptions options;
};

// Returns the negative log likelihood of normal distributions.
struct TENON_API GaussianNLLLoss final : Module<GaussianNLLLoss> {
  GaussianNLLLoss(const GaussianNllLossOptions& options = {}) : options(options) {}
  Tensor forward(const Tensor& input, const Tensor& target, const Tensor& var) const;
  void fields(FieldVisitor&) {}

  GaussianNllLossOptions options;
};

// Returns the loss of distances and targets of 1 and -1.
struct TENON_API HingeEmbeddingLoss final : Module<HingeEmbeddingLoss> {
  HingeEmbeddingLoss(double margin = 1.0, Reduction reduction = Reduction::mean)
      : margin(margin), reduction(reduction) {}
  Tensor forward(const Tensor& input, const Tensor& target) const;
  void fields(FieldVisitor&) {}

  double margin;
  Reduction reduction;
};

// Returns the loss of two scores, of which the target says which is to be the larger.
struct TENON_API MarginRankingLoss final : Module<MarginRankingLoss> {
  MarginRankingLoss(double margin = 0.0, Reduction reduction = Reduction::mean)
      : margin(margin), reduction(reduction) {}
  Tensor forward(const Tensor& input1, const Tensor& input2, const Tensor& target) const;
  void fields(FieldVisitor&) {}

  double margin;
  Reduction reduction;
};

// Returns the loss of an anchor that is to be nearer to the positive than to the negative.
struct TENON_API TripletMarginLoss final : Module<TripletMarginLoss> {
  TripletMarginLoss(const TripletMarginLossOptions& options = {}) : options(options) {}
  Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative) const;
  void fields(FieldVisitor&) {}

  TripletMarginLossOptions options;
};

// Returns the loss of the angle between two vectors and targets of 1 and -1.
struct TENON_API CosineEmbeddingLoss final : Module<CosineEmbeddingLoss> {
  CosineEmbeddingLoss(double margin = 0.0, Reduction reduction = Reduction::mean)
      : margin(margin), reduction(reduction) {}
  Tensor forward(const Tensor& input1, const Tensor& input2, const Tensor& target) const;
  void fields(FieldVisitor&) {}

  double margin;
  Reduction reduction;
};

// Returns the multi-class hinge loss of scores and labels.
struct TENON_API MultiMarginLoss final : Module<MultiMarginLoss> {
  MultiMarginLoss(const MultiMarginLossOptions& options = {});
  Tensor forward(const Tensor& input, const Tensor& target) const;
  void fields(FieldVisitor& v) { v("weight", weight); }

  Buffer weight;  // undefined if none was given
  int64_t p;
  double margin;
  Reduction reduction;
};

// Returns the logistic loss of scores and targets of 1 and -1.
struct TENON_API SoftMarginLoss final : Module<SoftMarginLoss> {
  SoftMarginLoss(Reduction reduction = Reduction::mean) : reduction(reduction) {}
  Tensor forward(const Tensor& input, const Tensor& target) const;
  void fields(FieldVisitor&) {}

  Reduction reduction;
};

// Returns the hinge loss of scores and several labels for each row.
struct TENON_API MultiLabelMarginLoss final : Module<MultiLabelMarginLoss> {
  MultiLabelMarginLoss(Reduction reduction = Reduction::mean) : reduction(reduction) {}
  Tensor forward(const Tensor& input, const Tensor& target) const;
  void fields(FieldVisitor&) {}

  Reduction reduction;
};

// Returns the binary cross entropy of logits, averaged over the classes.
struct TENON_API MultiLabelSoftMarginLoss final : Module<MultiLabelSoftMarginLoss> {
  MultiLabelSoftMarginLoss(const Tensor& weight = {}, Reduction reduction = Reduction::mean)
      : weight(weight), reduction(reduction) {}
  Tensor forward(const Tensor& input, const Tensor& target) const;
  void fields(FieldVisitor& v) { v("weight", weight); }

  Buffer weight;  // undefined if none was given
  Reduction reduction;
};

// Returns the connectionist temporal classification loss.
struct TENON_API CTCLoss final : Module<CTCLoss> {
  CTCLoss(const CtcLossOptions& options = {}) : options(options) {}
  Tensor forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                 const Tensor& target_lengths) const;
  void fields(FieldVisitor&) {}

  CtcLossOptions options;
};

}  // namespace tenon::nn
