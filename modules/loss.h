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

}  // namespace tenon::nn
