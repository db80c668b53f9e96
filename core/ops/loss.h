// Losses. `reduction` is "mean", "sum" or "none" (ValueError otherwise).
#pragma once

#include <string>

#include <tenon/core/tensor.h>

namespace tenon {

struct CrossEntropyOptions {
  Tensor weight = {};  // (C): of each class; undefined: 1
  std::string reduction = "mean";
  int64_t ignore_index = -100;  // rows with this label count for nothing
  double label_smoothing = 0;   // in [0, 1]: this share of the target is spread over all classes
};

// -log(softmax(logits)[target]), the mean weighted by the targets' class weights, as
// torch.nn.functional.cross_entropy. logits (N, C), (N, C, d1, …) or (C), floating; target of
// labels i64 or i32, (N), (N, d1, …) or (), or of probabilities with the logits' shape and type.
// Gives a scalar, or the target's shape for "none". A label outside [0, C) is an IndexError of the
// queued work, seen at the next wait, that names row, label and C.
TENON_API Tensor cross_entropy(const Tensor& logits, const Tensor& target,
                               const CrossEntropyOptions& options = {});

struct NllLossOptions {
  Tensor weight = {};
  std::string reduction = "mean";
  int64_t ignore_index = -100;
};

// -log_probabilities[target]; shapes as cross_entropy's with labels.
TENON_API Tensor nll_loss(const Tensor& log_probabilities, const Tensor& target,
                          const NllLossOptions& options = {});

// (x - y)^2 and |x - y|; the shapes broadcast. Different shapes are logged as a warning, once for
// each pair.
TENON_API Tensor mse_loss(const Tensor& x, const Tensor& y, const std::string& reduction = "mean");
TENON_API Tensor l1_loss(const Tensor& x, const Tensor& y, const std::string& reduction = "mean");

}  // namespace tenon
