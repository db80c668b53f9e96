// The optimizer RMSprop.
#pragma once

#include <tenon/modules/optim/optimizer.h>

namespace tenon::optim {

struct RMSpropOptions {
  double lr = 1e-2;         // finite and at least 0
  double alpha = 0.99;      // the decay of the averages, finite and at least 0
  double eps = 1e-8;        // added to the root of the average square
  double weight_decay = 0;  // this times the parameter is added to its gradient
  double momentum = 0;      // finite and at least 0
  bool centered = false;    // divides by an estimate of the deviation instead
  bool maximize = false;    // steps towards larger values of the objective
};

// RMSprop (Hinton's lecture 6e) with PyTorch's formula:
//   v = alpha v + (1 - alpha) g^2;
//   p = p - lr g / (sqrt(v) + eps).
// If centered, the average gradient's square is subtracted from v (Graves, arXiv:1308.0850).
// Constructors throw a ValueError for an option outside its range.
class TENON_API RMSprop final : public OptimizerOf<RMSpropOptions> {
 public:
  explicit RMSprop(std::vector<Tensor> params, const RMSpropOptions& options = {});
  // The learning rate alone: RMSprop(params, 1e-3).
  template <class Number>
    requires std::is_arithmetic_v<Number>
  RMSprop(std::vector<Tensor> params, Number lr)
      : RMSprop(std::move(params), RMSpropOptions{.lr = static_cast<double>(lr)}) {}
  explicit RMSprop(const std::vector<ParamGroup<RMSpropOptions>>& groups);

  using Optimizer::step;
  void step() override;

 protected:
  std::vector<Slot> slots(size_t group) override;
  std::vector<Option> options_of(size_t group) override;
  void check_options(size_t group) const override;
};

}  // namespace tenon::optim
