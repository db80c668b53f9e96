// Losses. They take floating tensors and return a scalar in their dtype, or for Reduction::none a
// value for each element or row; `reduction` says which. Each throws a
// ValueError for an undefined tensor that is not optional or an option outside its range, a
// ShapeError for tensors that do not fit, and a DTypeError for a dtype that it does not take.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon {

// How a loss combines the values of its elements.
enum class Reduction {
  none,       // not at all: the loss has a value for each element
  mean,       // by their mean; a loss with class weights divides by the sum of the weights
  sum,        // by their sum
  batchmean,  // by their sum divided by the size of the first dimension, in kl_div alone
};

// Returns the name of a reduction: "none", "mean", "sum" or "batchmean".
TENON_API const char* name_of(Reduction reduction);

// The options of cross_entropy.
struct CrossEntropyOptions {
  Tensor weight = {};  // a weight for each class, (C), in the dtype of the logits; by default 1
  Reduction reduction = Reduction::mean;  // how the losses of the rows are combined
  int64_t ignore_index = -100;            // rows with this label do not count
  double label_smoothing = 0;  // the share of the target that is spread over all classes, in [0, 1]
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

// The options of nll_loss.
struct NllLossOptions {
  Tensor weight = {};  // a weight for each class, (C), in the dtype of x; by default 1
  Reduction reduction = Reduction::mean;  // how the losses of the rows are combined
  int64_t ignore_index = -100;            // rows with this label do not count
};

// Returns the negative log likelihood -log_probabilities[target] for each row. Shapes, dtypes and
// errors are those of cross_entropy with labels.
TENON_API Tensor nll_loss(const Tensor& log_probabilities, const Tensor& target,
                          const NllLossOptions& options = {});

// Returns the squared differences (x - y)^2 as a scalar, or for Reduction::none in the shape to
// which x and y broadcast. Because broadcasting is rarely meant here, different shapes are logged
// as a warning, once for each pair. A weight, of the shape of x, is a factor of each value, and the
// mean is then that by the sum of the weights. Throws a ShapeError for shapes that do not
// broadcast, and for a weight of another shape.
TENON_API Tensor mse_loss(const Tensor& x, const Tensor& y, Reduction reduction = Reduction::mean,
                          const Tensor& weight = Tensor());
// Returns the absolute differences |x - y|. Shapes, the weight, warnings and errors are those of
// mse_loss.
TENON_API Tensor l1_loss(const Tensor& x, const Tensor& y, Reduction reduction = Reduction::mean,
                         const Tensor& weight = Tensor());

// Unless they say otherwise, the following losses compute a value for each element of the shape to
// which their tensors broadcast, and return a scalar, or for Reduction::none all values.

// The options of binary_cross_entropy.
struct BinaryCrossEntropyOptions {
  Tensor weight = {};  // a factor of each value, which broadcasts; by default 1
  Reduction reduction = Reduction::mean;
};
// Returns -(t log(x) + (1 - t) log(1 - x)) for probabilities x and targets t of one shape, both in
// [0, 1] and of one dtype; logarithms count as at least -100, as in PyTorch. An x outside of [0, 1]
// gives NaN. Throws a ShapeError for two shapes and a DTypeError for two dtypes.
TENON_API Tensor binary_cross_entropy(const Tensor& input, const Tensor& target,
                                      const BinaryCrossEntropyOptions& options = {});

// The options of binary_cross_entropy_with_logits.
struct BinaryCrossEntropyWithLogitsOptions {
  Tensor weight = {};  // a factor of each value, which broadcasts; by default 1
  Reduction reduction = Reduction::mean;
  Tensor pos_weight = {};  // a factor of the part t log(x), which broadcasts; by default 1
};
// Returns binary_cross_entropy of sigmoid(x), precise for every x. Throws a ShapeError unless input
// and target have one shape.
TENON_API Tensor
binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                 const BinaryCrossEntropyWithLogitsOptions& options = {});

// Returns the Kullback-Leibler divergence t (log(t) - x) of log-probabilities x and probabilities
// t, or with `log_target` exp(t) (t - x). Reduction::batchmean gives the divergence by its
// definition.
TENON_API Tensor kl_div(const Tensor& input, const Tensor& target,
                        Reduction reduction = Reduction::mean, bool log_target = false);

// Returns (x - y)^2 / 2 where |x - y| is at most delta, and delta (|x - y| - delta / 2) elsewhere
// (Huber 1964). It warns of broadcasting as mse_loss does. A weight, of the shape of x, is a factor
// of each value; as in PyTorch, the mean is then that of the weighted values, by their number.
// Throws a ValueError unless delta is above 0.
TENON_API Tensor huber_loss(const Tensor& x, const Tensor& y, Reduction reduction = Reduction::mean,
                            double delta = 1.0, const Tensor& weight = Tensor());
// Returns huber_loss with delta = beta, divided by beta, and l1_loss for beta 0 or one whose
// reciprocal is infinite in the dtype. Throws a
// ValueError if beta is negative.
TENON_API Tensor smooth_l1_loss(const Tensor& x, const Tensor& y,
                                Reduction reduction = Reduction::mean, double beta = 1.0);

// The options of poisson_nll_loss.
struct PoissonNllLossOptions {
  bool log_input = true;  // whether the input is the logarithm of the rate
  bool full = false;      // whether Stirling's approximation of log(t!) is added where t is above 1
  double eps = 1e-8;  // what is added to the rate before its logarithm is taken, without log_input
  Reduction reduction = Reduction::mean;
};
// Returns exp(x) - t x, or without log_input x - t log(x + eps): the negative log likelihood of
// counts t that have a Poisson distribution with the rate exp(x), or x.
TENON_API Tensor poisson_nll_loss(const Tensor& input, const Tensor& target,
                                  const PoissonNllLossOptions& options = {});

// The options of gaussian_nll_loss.
struct GaussianNllLossOptions {
  bool full = false;  // whether log(2 pi) / 2 is added
  // The least variance, above 0. Smaller ones, negative ones among them, count as that; their
  // gradient is not changed.
  double eps = 1e-6;
  Reduction reduction = Reduction::mean;
};
// Returns (log(var) + (x - t)^2 / var) / 2, the negative log likelihood of t that has a normal
// distribution with mean x. Throws a ShapeError unless the variance has the input's shape, that
// shape with a last dimension of size 1, or that without the last dimension.
TENON_API Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var,
                                   const GaussianNllLossOptions& options = {});

// Returns x where the target is 1, and max(0, margin - x) where it is -1.
TENON_API Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target,
                                      double margin = 1.0, Reduction reduction = Reduction::mean);
// Returns max(0, margin - t (a - b)) for targets t, which are 1 where a should be the larger of
// both and -1 where b should.
TENON_API Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& target,
                                     double margin = 0.0, Reduction reduction = Reduction::mean);
// Returns log(1 + exp(-t x)) for targets t of 1 and -1, precise for every x.
TENON_API Tensor soft_margin_loss(const Tensor& input, const Tensor& target,
                                  Reduction reduction = Reduction::mean);

// The options of triplet_margin_loss.
struct TripletMarginLossOptions {
  double margin = 1.0;  // how much farther the negative should be than the positive, above 0
  double p = 2.0;       // which norm the distances are, as `norm` takes it
  double eps = 1e-6;    // what is added to each difference
  bool swap = false;  // whether the negative's distance to the positive counts where it is smaller
  Reduction reduction = Reduction::mean;
};
// Returns max(0, margin + d(anchor, positive) - d(anchor, negative)) for rows (…, n), a value for
// each row, where d is the p-norm of the difference. Throws a ShapeError unless all three have one
// shape.
TENON_API Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive,
                                     const Tensor& negative,
                                     const TripletMarginLossOptions& options = {});

// Returns 1 - cos(a, b) where the target is 1, and max(0, cos(a, b) - margin) where it is -1, for
// rows (n, d) and a target (n), a value for each row, or for (d) and (). Throws a ShapeError for
// other numbers of dimensions.
TENON_API Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& target,
                                       double margin = 0.0, Reduction reduction = Reduction::mean);

// The options of multi_margin_loss.
struct MultiMarginLossOptions {
  int64_t p = 1;        // the power of each value, 1 or 2
  double margin = 1.0;  // how much larger the label's score should be than the others
  Tensor weight = {};   // a weight for each label's class, (C), in the dtype of x; by default 1
  Reduction reduction = Reduction::mean;
};
// Returns the sum of max(0, margin - x_t + x_i)^p over the classes i beside the label t, divided by
// C, for scores (n, C) and labels (n), or (C) and (): a value for each row. Labels are i64 or i32;
// one outside [0, C) is an IndexError of the queued work.
TENON_API Tensor multi_margin_loss(const Tensor& input, const Tensor& target,
                                   const MultiMarginLossOptions& options = {});
// Returns the sum of max(0, 1 - x_t + x_i) over the labels t of a row and the classes i that are no
// labels of it, divided by C, for scores and labels (n, C), or (C). The labels of a row, i64 or
// i32, end with the first that is below 0; one of C or more is an IndexError of the queued work.
// The memory that it needs grows with C^2.
TENON_API Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target,
                                        Reduction reduction = Reduction::mean);
// Returns binary_cross_entropy_with_logits, averaged over the last dimension, the classes: a value
// for each row. The weight (C), if it is defined, is a factor for each class. Throws a ShapeError
// unless input and target have one shape, of at least one dimension.
TENON_API Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target,
                                             const Tensor& weight = {},
                                             Reduction reduction = Reduction::mean);

// The options of ctc_loss.
struct CtcLossOptions {
  int64_t blank = 0;  // the class that stands for no label, in [0, C)
  // How the losses are combined; for a mean, each is first divided by its number of labels.
  Reduction reduction = Reduction::mean;
  bool zero_infinity = false;  // whether sequences that cannot be aligned have loss and gradient 0
};
// Returns the connectionist temporal classification loss (Graves et al. 2006): of log-probabilities
// (t, n, C), or (t, C) for one sequence, of which `input_lengths` (n) steps count, the negative
// logarithm of the probability of the labels: a value for each sequence. `targets` is (n, s), or
// (sum of target_lengths), of which `target_lengths` (n) labels count; these three are i64 or i32.
// If the labels are in one row, it waits for the lengths. As in PyTorch, the gradient is that for
// log_probs made by log_softmax. Where a sequence cannot be aligned, its loss is infinite; its
// gradient is finite then, exp(log_probs) times that of the loss (PyTorch's is NaN), and means
// nothing: look at the loss, or set zero_infinity. Second derivatives are an AutogradError.
TENON_API Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets,
                          const Tensor& input_lengths, const Tensor& target_lengths,
                          const CtcLossOptions& options = {});

}  // namespace tenon
