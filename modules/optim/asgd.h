// The optimizer ASGD: averaged stochastic gradient descent.
#pragma once

#include <tenon/modules/optim/optimizer.h>

namespace tenon::optim {

struct ASGDOptions {
  double lr = 1e-2;         // finite and at least 0
  double lambd = 1e-4;      // each step multiplies the parameter by 1 - lambd eta; at least 0
  double alpha = 0.75;      // step t has the rate eta = lr / (1 + lambd lr t)^alpha; at least 0
  double t0 = 1e6;          // the number of steps after which the average begins; finite
  double weight_decay = 0;  // this times the parameter is added to its gradient; at least 0
  bool maximize = false;    // whether it steps towards larger values of the objective
};

// Averaged stochastic gradient descent (Polyak and Juditsky 1992), p = (1 - lambd eta) p - eta g.
// The averages of p are in the state, under "ax". As in PyTorch, the rate eta of a step is computed
// at the end of the one before, and in f32.
class TENON_API ASGD final : public OptimizerOf<ASGDOptions> {
 public:
  // Makes an optimizer of one group of parameters.
  explicit ASGD(std::vector<Tensor> params, const ASGDOptions& options = {});
  // Makes one with this learning rate and the other options by default: ASGD(params, 1e-3).
  template <class Number>
    requires std::is_arithmetic_v<Number>
  ASGD(std::vector<Tensor> params, Number lr)
      : ASGD(std::move(params), ASGDOptions{.lr = static_cast<double>(lr)}) {}
  // Makes an optimizer of several groups, each with options of its own.
  explicit ASGD(const std::vector<ParamGroup<ASGDOptions>>& groups);

  using Optimizer::step;
  // Makes one step, as Optimizer::step() says.
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
