// The optimizer Lion.
#pragma once

#include <array>

#include <tenon/modules/optim/optimizer.h>

namespace tenon::optim {

struct LionOptions {
  double lr = 1e-4;  // finite and at least 0
  // The weight of the average in the step, and its own decay, each at least 0 and below 1.
  std::array<double, 2> betas = {0.9, 0.99};
  double weight_decay = 0;  // each step multiplies the parameter by 1 - lr weight_decay; at least 0
  bool maximize = false;    // whether it steps towards larger values of the objective
};

// The optimizer of Chen et al., arXiv:2302.06675, which steps by the sign of an average:
//   p = p - lr (sign(beta1 m + (1 - beta1) g) + weight_decay p);
//   m = beta2 m + (1 - beta2) g.
class TENON_API Lion final : public OptimizerOf<LionOptions> {
 public:
  // Makes an optimizer of one group of parameters.
  explicit Lion(std::vector<Tensor> params, const LionOptions& options = {});
  // Makes one with this learning rate and the other options by default: Lion(params, 1e-3).
  template <class Number>
    requires std::is_arithmetic_v<Number>
  Lion(std::vector<Tensor> params, Number lr)
      : Lion(std::move(params), LionOptions{.lr = static_cast<double>(lr)}) {}
  // Makes an optimizer of several groups, each with options of its own.
  explicit Lion(const std::vector<ParamGroup<LionOptions>>& groups);

  using Optimizer::step;
  // Makes one step, as Optimizer::step() says.
  void step() override;

 protected:
  std::vector<Slot> slots(size_t group) override;
  std::vector<Option> options_of(size_t group) override;
  void check_options(size_t group) const override;
};

}  // namespace tenon::optim
