// Losses.
#pragma once

#include <tenon/modules/module.h>

namespace tenon::nn {

struct CrossEntropyLossOptions {
  Tensor weight = {};              // (C): weight of each class; default all 1
  std::string reduction = "mean";  // "mean", "sum" or "none"
  int64_t ignore_index = -100;     // targets of this value count for nothing
  double label_smoothing = 0;      // in [0, 1]
};

// Logits (N, C) or (N, C, d1, …) against class numbers (N) or (N, d1, …). A class number outside
// [0, C) is an IndexError.
struct TENON_API CrossEntropyLoss final : Module<CrossEntropyLoss> {
  CrossEntropyLoss(const CrossEntropyLossOptions& options = {});
  Tensor forward(const Tensor& logits, const Tensor& target) const;
  void fields(FieldVisitor& v) { v("weight", weight); }

  Buffer weight;  // undefined where none was given
  std::string reduction;
  int64_t ignore_index;
  double label_smoothing;
};

// (input - target)^2; `reduction` is "mean", "sum" or "none".
struct TENON_API MSELoss final : Module<MSELoss> {
  MSELoss(std::string reduction = "mean");
  Tensor forward(const Tensor& input, const Tensor& target) const;
  void fields(FieldVisitor&) {}

  std::string reduction;
};

}  // namespace tenon::nn
