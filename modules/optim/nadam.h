// The optimizer NAdam.
#pragma once

#include <array>

#include <tenon/modules/optim/optimizer.h>

namespace tenon::optim {

struct NAdamOptions {
  double lr = 2e-3;  // finite and at least 0
  // The decay of the averages of the gradient and of its square, each at least 0 and below 1.
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;             // added to the root of the average square; at least 0
  double weight_decay = 0;       // this times the parameter is added to its gradient; at least 0
  double momentum_decay = 4e-3;  // the decay of the momentum's schedule; at least 0
  bool decoupled_weight_decay = false;  // whether weight decay is that of AdamW
  bool maximize = false;                // whether it steps towards larger values of the objective
};

// Adam with Nesterov's momentum (Dozat 2016), whose momentum in step t is
// beta1 (1 - 0.96^(t momentum_decay) / 2).
class TENON_API NAdam final : public OptimizerOf<NAdamOptions> {
 public:
  // Makes an optimizer of one group of parameters.
  explicit NAdam(std::vector<Tensor> params, const NAdamOptions& options = {});
  // Makes one with this learning rate and the other options by default: NAdam(params, 1e-3).
  template <class Number>
    requires std::is_arithmetic_v<Number>
  NAdam(std::vector<Tensor> params, Number lr)
      : NAdam(std::move(params), NAdamOptions{.lr = static_cast<double>(lr)}) {}
  // Makes an optimizer of several groups, each with options of its own.
  explicit NAdam(const std::vector<ParamGroup<NAdamOptions>>& groups);

  using Optimizer::step;
  // Makes one step, as Optimizer::step() says.
  void step() override;

 protected:
  std::vector<Slot> slots(size_t group) override;
  std::vector<Memory> memories(size_t) override { return {{"mu_product", 1}}; }
  std::vector<Option> options_of(size_t group) override;
  void check_options(size_t group) const override;
};

}  // namespace tenon::optim
