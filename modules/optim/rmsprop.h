// The optimizer RMSprop.
#pragma once

#include <tenon/modules/optim/optimizer.h>

namespace tenon::optim {

struct RMSpropOptions {
  double lr = 1e-2;         // finite and at least 0
  double alpha = 0.99;      // the decay of the averages, finite and at least 0
  double eps = 1e-8;        // added to the root of the average square; at least 0
  double weight_decay = 0;  // this times the parameter is added to its gradient; at least 0
  double momentum = 0;      // finite and at least 0
  // Whether it divides by an estimate of the gradient's standard deviation instead.
  bool centered = false;
  bool maximize = false;  // whether it steps towards larger values of the objective
};

// The optimizer of Hinton's lecture 6e, with PyTorch's formula:
//   v = alpha v + (1 - alpha) g^2;
//   p = p - lr g / (sqrt(v) + eps).
// If `centered` is true, the average gradient's square is subtracted from v (Graves,
// arXiv:1308.0850). With a momentum, b = momentum b + g / (sqrt(v) + eps), and p = p - lr b.
class TENON_API RMSprop final : public OptimizerOf<RMSpropOptions> {
 public:
  // Makes an optimizer of one group of parameters.
  explicit RMSprop(std::vector<Tensor> params, const RMSpropOptions& options = {});
  // Makes one with this learning rate and the other options by default: RMSprop(params, 1e-3).
  template <class Number>
    requires std::is_arithmetic_v<Number>
  RMSprop(std::vector<Tensor> params, Number lr)
      : RMSprop(std::move(params), RMSpropOptions{.lr = static_cast<double>(lr)}) {}
  // Makes an optimizer of several groups, each with options of its own.
  explicit RMSprop(const std::vector<ParamGroup<RMSpropOptions>>& groups);

  using Optimizer::step;
  // Makes one step, as Optimizer::step() says.
  void step() override;

 protected:
  std::vector<Slot> slots(size_t group) override;
  std::vector<Option> options_of(size_t group) override;
  void check_options(size_t group) const override;
};

}  // namespace tenon::optim
