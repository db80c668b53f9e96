// Losses.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon {

// How a loss combines the values of its elements.
enum class Reduction {
  none,       // it does not: the loss has a value for each element
  mean,       // their mean; a loss with class weights divides by the sum of the weights
  sum,        // their sum
  batchmean,  // their sum divided by the size of the first dimension: for kl_div alone
};

// Returns the name of a reduction: "none", "mean", "sum" or "batchmean".
TENON_API const char* name_of(Reduction reduction);

struct CrossEntropyOptions {
  Tensor weight = {};  // (C): a weight for each class; undefined means 1 for all
  Reduction reduction = Reduction::mean;
  int64_t ignore_index = -100;  // rows with this label are ignored
  double label_smoothing = 0;   // in [0, 1]: this share of the target is spread over all classes
};

// Returns the cross entropy -log(softmax(logits)[target]), as torch.nn.functional.cross_entropy
// does. The logits are floating and of shape (N, C), (N, C, d1, …) or (C). The target has labels of
// dtype i64 or i32 and shape (N), (N, d1, …) or (), or probabilities with the shape and dtype of
// the logits. Returns a scalar, or for Reduction::none a loss of the shape of the labels. Throws a
// ShapeError, DTypeError or ValueError for arguments that do not fit. A label outside [0, C) is an
// IndexError of the queued work, which the next wait throws and which names the row, the label and
// C.
TENON_API Tensor cross_entropy(const Tensor& logits, const Tensor& target,
                               const CrossEntropyOptions& options = {});

struct NllLossOptions {
  Tensor weight = {};  // (C): a weight for each class; undefined means 1 for all
  Reduction reduction = Reduction::mean;
  int64_t ignore_index = -100;  // rows with this label are ignored
};

// Returns the negative log likelihood -log_probabilities[target]. Shapes, dtypes and errors are
// those of cross_entropy with labels.
TENON_API Tensor nll_loss(const Tensor& log_probabilities, const Tensor& target,
                          const NllLossOptions& options = {});

// Returns the squared differences (x - y)^2 of two floating tensors. The shapes broadcast; because
// that is rarely meant, different shapes are logged as a warning, once for each pair. Returns a
// scalar, or for Reduction::none the broadcast shape. A weight, of the shape of x, is a factor of
// each value, and the mean is then that by the sum of the weights. Throws a ShapeError for shapes
// that do not broadcast, and for a weight of another shape.
TENON_API Tensor mse_loss(const Tensor& x, const Tensor& y, Reduction reduction = Reduction::mean,
                          const Tensor& weight = Tensor());
// Returns the absolute differences |x - y|. Shapes, the weight, warnings and errors are those of
// mse_loss.
TENON_API Tensor l1_loss(const Tensor& x, const Tensor& y, Reduction reduction = Reduction::mean,
                         const Tensor& weight = Tensor());

// Losses of core/ops/loss/*: unless they say otherwise, they take floating tensors, compute a value
// for each element of the broadcast shape and return a scalar, or for Reduction::none all values.
// They throw a ShapeError for shapes that do not fit and a ValueError for options out of range.

struct BinaryCrossEntropyOptions {
  Tensor weight = {};  // a factor of each value; broadcasts
  Reduction reduction = Reduction::mean;
};
// Returns -(t log(x) + (1 - t) log(1 - x)) for probabilities x and targets t of one shape, both in
// [0, 1]; logarithms count as at least -100, as in PyTorch. An x outside of [0, 1] gives NaN.
TENON_API Tensor binary_cross_entropy(const Tensor& input, const Tensor& target,
                                      const BinaryCrossEntropyOptions& options = {});

struct BinaryCrossEntropyWithLogitsOptions {
  Tensor weight = {};  // a factor of each value; broadcasts
  Reduction reduction = Reduction::mean;
  Tensor pos_weight = {};  // a factor of the part with t; broadcasts
};
// Returns binary_cross_entropy of sigmoid(x), precise for every x.
TENON_API Tensor
binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                 const BinaryCrossEntropyWithLogitsOptions& options = {});

// Returns the Kullback-Leibler divergence t (log(t) - x) of log-probabilities x and probabilities
// t, or with `log_target` exp(t) (t - x). Reduction::batchmean gives the divergence by its
// definition.
TENON_API Tensor kl_div(const Tensor& input, const Tensor& target,
                        Reduction reduction = Reduction::mean, bool log_target = false);

// Returns (x - y)^2 / 2 where |x - y| is at most delta, and delta (|x - y| - delta / 2) elsewhere
// (Huber 1964). Warns as mse_loss. Delta must be above 0. A weight, of the shape of x, is a factor
// of each value; as in PyTorch, the mean is then that of the weighted values, by their number.
TENON_API Tensor huber_loss(const Tensor& x, const Tensor& y, Reduction reduction = Reduction::mean,
                            double delta = 1.0, const Tensor& weight = Tensor());
// Returns huber_loss divided by beta = delta; for beta 0 it is l1_loss. Beta must not be below 0.
TENON_API Tensor smooth_l1_loss(const Tensor& x, const Tensor& y,
                                Reduction reduction = Reduction::mean, double beta = 1.0);

struct PoissonNllLossOptions {
  bool log_input = true;  // the input is the logarithm of the rate
  bool full = false;      // adds Stirling's approximation of log(t!) where t is above 1
  double eps = 1e-8;      // keeps log away from 0, unless log_input
  Reduction reduction = Reduction::mean;
};
// Returns exp(x) - t x, or without log_input x - t log(x + eps): the negative log likelihood of
// counts t.
TENON_API Tensor poisson_nll_loss(const Tensor& input, const Tensor& target,
                                  const PoissonNllLossOptions& options = {});

struct GaussianNllLossOptions {
  bool full = false;  // adds log(2 pi) / 2
  double eps = 1e-6;  // the least variance; the gradient passes as if there were none
  Reduction reduction = Reduction::mean;
};
// Returns (log(var) + (x - t)^2 / var) / 2. The variance has the input's shape, that shape with a
// last dimension of size 1, or without the last dimension. Negative variances count as eps.
TENON_API Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var,
                                   const GaussianNllLossOptions& options = {});

// Returns x where the target is 1, and max(0, margin - x) where it is -1.
TENON_API Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target,
                                      double margin = 1.0, Reduction reduction = Reduction::mean);
// Returns max(0, margin - t (a - b)) for targets t of 1 and -1.
TENON_API Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& target,
                                     double margin = 0.0, Reduction reduction = Reduction::mean);
// Returns log(1 + exp(-t x)) for targets t of 1 and -1, precise for every x.
TENON_API Tensor soft_margin_loss(const Tensor& input, const Tensor& target,
                                  Reduction reduction = Reduction::mean);

struct TripletMarginLossOptions {
  double margin = 1.0;  // above 0
  double p = 2.0;       // of the norm
  double eps = 1e-6;    // added to each difference
  bool swap = false;    // the negative's distance is the smaller of those to anchor and positive
  Reduction reduction = Reduction::mean;
};
// Returns max(0, margin + d(anchor, positive) - d(anchor, negative)) for rows (…, d) of one shape,
// a value for each row, where d is the p-norm of the difference.
TENON_API Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive,
                                     const Tensor& negative,
                                     const TripletMarginLossOptions& options = {});

// Returns 1 - cos(a, b) where the target is 1, and max(0, cos(a, b) - margin) where it is -1, for
// rows (n, d) and a target (n), or (d) and ().
TENON_API Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& target,
                                       double margin = 0.0, Reduction reduction = Reduction::mean);

struct MultiMarginLossOptions {
  int64_t p = 1;  // 1 or 2
  double margin = 1.0;
  Tensor weight = {};  // (C): a weight for each class
  Reduction reduction = Reduction::mean;
};
// Returns the sum of max(0, margin - x_t + x_i)^p over the classes i beside the label t, divided by
// C, for scores (n, C) and labels (n), or (C) and (): a value for each row. Labels are i64 or i32;
// one outside [0, C) is an IndexError of the queued work.
TENON_API Tensor multi_margin_loss(const Tensor& input, const Tensor& target,
                                   const MultiMarginLossOptions& options = {});
// Returns the sum of max(0, 1 - x_t + x_i) over the labels t of a row and the classes i that are no
// labels of it, divided by C, for scores and labels (n, C), or (C). The labels of a row, i64 or
// i32, end with the first that is below 0. The memory that it needs grows with C^2.
TENON_API Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target,
                                        Reduction reduction = Reduction::mean);
// Returns binary_cross_entropy_with_logits, averaged over the last dimension, the classes: a value
// for each row. The weight, if it is defined, is a factor for each class.
TENON_API Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target,
                                             const Tensor& weight = {},
                                             Reduction reduction = Reduction::mean);

struct CtcLossOptions {
  int64_t blank = 0;
  Reduction reduction = Reduction::mean;  // mean: each loss by its number of labels, then the mean
  bool zero_infinity = false;  // sequences that cannot be aligned count 0, and so their gradients
};
// Returns the connectionist temporal classification loss (Graves et al. 2006): of log-probabilities
// (t, n, C), or (t, C) for one sequence, of which `input_lengths` (n) steps count, the negative
// logarithm of the probability of the labels. `targets` is (n, s), or (sum of target_lengths), of
// which `target_lengths` (n) labels count; integers. Labels in one row wait for the lengths. As in
// PyTorch, the gradient is that for log_probs made by log_softmax. Where a sequence cannot be
// aligned, its loss is infinite; its gradient is finite then, exp(log_probs) times that of the loss
// (PyTorch's is NaN), and means nothing: look at the loss, or set zero_infinity. Second derivatives
// are an AutogradError.
TENON_API Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets,
                          const Tensor& input_lengths, const Tensor& target_lengths,
                          const CtcLossOptions& options = {});

}  // namespace tenon
