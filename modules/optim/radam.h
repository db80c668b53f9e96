// The optimizer RAdam.
#pragma once

#include <array>

#include <tenon/modules/optim/optimizer.h>

namespace tenon::optim {

struct RAdamOptions {
  double lr = 1e-3;  // finite and at least 0
  // The decay of the averages of the gradient and of its square, each at least 0 and below 1.
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;                    // added to the root of the average square
  double weight_decay = 0;              // this times the parameter is added to its gradient
  bool decoupled_weight_decay = false;  // weight decay is that of AdamW
  bool maximize = false;                // steps towards larger values of the objective
};

// RAdam: Adam whose first steps, while the variance of the average square is large, have momentum
// alone (Liu et al., arXiv:1908.03265). Constructors throw a ValueError for an option outside its
// range.
class TENON_API RAdam final : public OptimizerOf<RAdamOptions> {
 public:
  explicit RAdam(std::vector<Tensor> params, const RAdamOptions& options = {});
  // The learning rate alone: RAdam(params, 1e-3).
  template <class Number>
    requires std::is_arithmetic_v<Number>
  RAdam(std::vector<Tensor> params, Number lr)
      : RAdam(std::move(params), RAdamOptions{.lr = static_cast<double>(lr)}) {}
  explicit RAdam(const std::vector<ParamGroup<RAdamOptions>>& groups);

  using Optimizer::step;
  void step() override;

 protected:
  std::vector<Slot> slots(size_t group) override;
  std::vector<Option> options_of(size_t group) override;
  void check_options(size_t group) const override;
};

}  // namespace tenon::optim
