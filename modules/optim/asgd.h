// The optimizer ASGD: averaged stochastic gradient descent.
#pragma once

#include <tenon/modules/optim/optimizer.h>

namespace tenon::optim {

struct ASGDOptions {
  double lr = 1e-2;         // finite and at least 0
  double lambd = 1e-4;      // each step shrinks the parameter by the factor 1 - lambd eta
  double alpha = 0.75;      // step t has the rate eta = lr / (1 + lambd lr t)^alpha
  double t0 = 1e6;          // after this many steps the average begins
  double weight_decay = 0;  // this times the parameter is added to its gradient
  bool maximize = false;    // steps towards larger values of the objective
};

// Averaged stochastic gradient descent (Polyak and Juditsky 1992). The averages are in the state,
// under "ax". As in PyTorch, the rate of a step is computed at the end of the one before, and in
// f32. Constructors throw a ValueError for an option outside its range.
class TENON_API ASGD final : public OptimizerOf<ASGDOptions> {
 public:
  explicit ASGD(std::vector<Tensor> params, const ASGDOptions& options = {});
  // The learning rate alone: ASGD(params, 1e-3).
  template <class Number>
    requires std::is_arithmetic_v<Number>
  ASGD(std::vector<Tensor> params, Number lr)
      : ASGD(std::move(params), ASGDOptions{.lr = static_cast<double>(lr)}) {}
  explicit ASGD(const std::vector<ParamGroup<ASGDOptions>>& groups);

  using Optimizer::step;
  void step() override;

 protected:
  std::vector<Slot> slots(size_t group) override;
  std::vector<Memory> memories(size_t group) override {
    return {{"eta", static_cast<float>(options_[group].lr)}, {"mu", 1}};
  }
  std::vector<Option> options_of(size_t group) override;
  void check_options(size_t group) const override;
};

}  // namespace tenon::optim
