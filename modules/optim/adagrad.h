// The optimizer Adagrad.
#pragma once

#include <tenon/modules/optim/optimizer.h>

namespace tenon::optim {

struct AdagradOptions {
  double lr = 1e-2;         // finite and at least 0
  double lr_decay = 0;      // the decay of the rate, as below; at least 0
  double weight_decay = 0;  // this times the parameter is added to its gradient; at least 0
  double initial_accumulator_value = 0;  // the first value of the sums of squares
  double eps = 1e-10;                    // added to the root of the sum; at least 0
  bool maximize = false;                 // whether it steps towards larger values of the objective
};

// The optimizer of Duchi et al., JMLR 12, 2011, which divides by the root of the sum of all squared
// gradients:
//   s = s + g^2;
//   p = p - rate g / (sqrt(s) + eps), where step t has the rate lr / (1 + (t - 1) lr_decay).
class TENON_API Adagrad final : public OptimizerOf<AdagradOptions> {
 public:
  // Makes an optimizer of one group of parameters.
  explicit Adagrad(std::vector<Tensor> params, const AdagradOptions& options = {});
  // Makes one with this learning rate and the other options by default: Adagrad(params, 1e-3).
  template <class Number>
    requires std::is_arithmetic_v<Number>
  Adagrad(std::vector<Tensor> params, Number lr)
      : Adagrad(std::move(params), AdagradOptions{.lr = static_cast<double>(lr)}) {}
  // Makes an optimizer of several groups, each with options of its own.
  explicit Adagrad(const std::vector<ParamGroup<AdagradOptions>>& groups);

  using Optimizer::step;
  // Makes one step, as Optimizer::step() says.
  void step() override;

 protected:
  std::vector<Slot> slots(size_t group) override;
  std::vector<Option> options_of(size_t group) override;
  void check_options(size_t group) const override;
};

}  // namespace tenon::optim
