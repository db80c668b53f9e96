// The optimizer Rprop: resilient propagation.
#pragma once

#include <array>

#include <tenon/modules/optim/optimizer.h>

namespace tenon::optim {

struct RpropOptions {
  double lr = 1e-2;  // the size of the first step, finite and at least 0
  // The factors of a step's size where the gradient turns and where it does not, in (0, 1) and
  // above 1.
  std::array<double, 2> etas = {0.5, 1.2};
  std::array<double, 2> step_sizes = {1e-6, 50};  // the smallest and the largest step, at least 0
  bool maximize = false;  // whether it steps towards larger values of the objective
};

// The optimizer of Riedmiller and Braun 1993, for gradients over all data. Each element steps by
// the sign of its gradient, by a size that grows while the sign stays; where the sign turns, the
// size shrinks, and the element does not step.
class TENON_API Rprop final : public OptimizerOf<RpropOptions> {
 public:
  // Makes an optimizer of one group of parameters.
  explicit Rprop(std::vector<Tensor> params, const RpropOptions& options = {});
  // Makes one with this learning rate and the other options by default: Rprop(params, 1e-3).
  template <class Number>
    requires std::is_arithmetic_v<Number>
  Rprop(std::vector<Tensor> params, Number lr)
      : Rprop(std::move(params), RpropOptions{.lr = static_cast<double>(lr)}) {}
  // Makes an optimizer of several groups, each with options of its own.
  explicit Rprop(const std::vector<ParamGroup<RpropOptions>>& groups);

  using Optimizer::step;
  // Makes one step, as Optimizer::step() says.
  void step() override;

 protected:
  std::vector<Slot> slots(size_t group) override;
  std::vector<Option> options_of(size_t group) override;
  void check_options(size_t group) const override;
};

}  // namespace tenon::optim
