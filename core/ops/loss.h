// Losses.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon {

// How a loss combines the values of its elements.
enum class Reduction {
  none,  // it does not: the loss has a value for each element
  mean,  // their mean; a loss with class weights divides by the sum of the weights
  sum,   // their sum
};

// Returns the name of a reduction: "none", "mean" or "sum".
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
// scalar, or for Reduction::none the broadcast shape. Throws a ShapeError for shapes that do not
// broadcast.
TENON_API Tensor mse_loss(const Tensor& x, const Tensor& y, Reduction reduction = Reduction::mean);
// Returns the absolute differences |x - y|. Shapes, warnings and errors are those of mse_loss.
TENON_API Tensor l1_loss(const Tensor& x, const Tensor& y, Reduction reduction = Reduction::mean);

}  // namespace tenon
