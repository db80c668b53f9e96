// The optimizer RAdam.
#pragma once

#include <array>

#include <tenon/modules/optim/optimizer.h>

namespace tenon::optim {

struct RAdamOptions {
  double lr = 1e-3;  // finite and at least 0
  // The decay of the averages of the gradient and of its square, each at least 0 and below 1.
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;        // added to the root of the average square; at least 0
  double weight_decay = 0;  // this times the parameter is added to its gradient; at least 0
  bool decoupled_weight_decay = false;  // whether weight decay is that of AdamW
  bool maximize = false;                // whether it steps towards larger values of the objective
};

// Adam with first steps that have momentum alone, while the variance of the average square is large
// (Liu et al., arXiv:1908.03265).
class TENON_API RAdam final : public OptimizerOf<RAdamOptions> {
 public:
  // Makes an optimizer of one group of parameters.
  explicit RAdam(std::vector<Tensor> params, const RAdamOptions& options = {});
  // Makes one with this learning rate and the other options by default: RAdam(params, 1e-3).
  template <class Number>
    requires std::is_arithmetic_v<Number>
  RAdam(std::vector<Tensor> params, Number lr)
      : RAdam(std::move(params), RAdamOptions{.lr = static_cast<double>(lr)}) {}
  // Makes an optimizer of several groups, each with options of its own.
  explicit RAdam(const std::vector<ParamGroup<RAdamOptions>>& groups);

  using Optimizer::step;
  // Makes one step, as Optimizer::step() says.
  void step() override;

 protected:
  std::vector<Slot> slots(size_t group) override;
  std::vector<Option> options_of(size_t group) override;
  void check_options(size_t group) const override;
};

}  // namespace tenon::optim
