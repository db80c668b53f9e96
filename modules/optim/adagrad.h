// The optimizer Adagrad.
#pragma once

#include <tenon/modules/optim/optimizer.h>

namespace tenon::optim {

struct AdagradOptions {
  double lr = 1e-2;                      // finite and at least 0
  double lr_decay = 0;                   // step t has the rate lr / (1 + (t - 1) lr_decay)
  double weight_decay = 0;               // this times the parameter is added to its gradient
  double initial_accumulator_value = 0;  // of the sums of squares
  double eps = 1e-10;                    // added to the root of the sum
  bool maximize = false;                 // steps towards larger values of the objective
};

// Adagrad (Duchi et al., JMLR 12, 2011): divides by the root of the sum of all squared gradients.
// Constructors throw a ValueError for an option outside its range.
class TENON_API Adagrad final : public OptimizerOf<AdagradOptions> {
 public:
  explicit Adagrad(std::vector<Tensor> params, const AdagradOptions& options = {});
  // The learning rate alone: Adagrad(params, 1e-3).
  template <class Number>
    requires std::is_arithmetic_v<Number>
  Adagrad(std::vector<Tensor> params, Number lr)
      : Adagrad(std::move(params), AdagradOptions{.lr = static_cast<double>(lr)}) {}
  explicit Adagrad(const std::vector<ParamGroup<AdagradOptions>>& groups);

  using Optimizer::step;
  void step() override;

 protected:
  std::vector<Slot> slots(size_t group) override;
  std::vector<Option> options_of(size_t group) override;
  void check_options(size_t group) const override;
};

}  // namespace tenon::optim
