// The optimizer NAdam.
#pragma once

#include <array>

#include <tenon/modules/optim/optimizer.h>

namespace tenon::optim {

struct NAdamOptions {
  double lr = 2e-3;  // finite and at least 0
  // The decay of the averages of the gradient and of its square, each at least 0 and below 1.
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;                    // added to the root of the average square
  double weight_decay = 0;              // this times the parameter is added to its gradient
  double momentum_decay = 4e-3;         // of the momentum's schedule
  bool decoupled_weight_decay = false;  // weight decay is that of AdamW
  bool maximize = false;                // steps towards larger values of the objective
};

// NAdam: Adam with Nesterov's momentum (Dozat 2016). Constructors throw a ValueError for an option
// outside its range.
class TENON_API NAdam final : public OptimizerOf<NAdamOptions> {
 public:
  explicit NAdam(std::vector<Tensor> params, const NAdamOptions& options = {});
  // The learning rate alone: NAdam(params, 1e-3).
  template <class Number>
    requires std::is_arithmetic_v<Number>
  NAdam(std::vector<Tensor> params, Number lr)
      : NAdam(std::move(params), NAdamOptions{.lr = static_cast<double>(lr)}) {}
  explicit NAdam(const std::vector<ParamGroup<NAdamOptions>>& groups);

  using Optimizer::step;
  void step() override;

 protected:
  std::vector<Slot> slots(size_t group) override;
  std::vector<Memory> memories(size_t) override { return {{"mu_product", 1}}; }
  std::vector<Option> options_of(size_t group) override;
  void check_options(size_t group) const override;
};

}  // namespace tenon::optim
