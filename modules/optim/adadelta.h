// The optimizer Adadelta.
#pragma once

#include <tenon/modules/optim/optimizer.h>

namespace tenon::optim {

struct AdadeltaOptions {
  double lr = 1;            // finite and at least 0
  double rho = 0.9;         // the decay of the averages, at least 0 and at most 1
  double eps = 1e-6;        // added below both roots; at least 0
  double weight_decay = 0;  // this times the parameter is added to its gradient; at least 0
  bool maximize = false;    // whether it steps towards larger values of the objective
};

// The optimizer of Zeiler, arXiv:1212.5701, which scales each step by the root of the average
// squared step:
//   v = rho v + (1 - rho) g^2, and d = g sqrt(a + eps) / sqrt(v + eps);
//   p = p - lr d, and a = rho a + (1 - rho) d^2.
class TENON_API Adadelta final : public OptimizerOf<AdadeltaOptions> {
 public:
  // Makes an optimizer of one group of parameters.
  explicit Adadelta(std::vector<Tensor> params, const AdadeltaOptions& options = {});
  // Makes one with this learning rate and the other options by default: Adadelta(params, 1e-3).
  template <class Number>
    requires std::is_arithmetic_v<Number>
  Adadelta(std::vector<Tensor> params, Number lr)
      : Adadelta(std::move(params), AdadeltaOptions{.lr = static_cast<double>(lr)}) {}
  // Makes an optimizer of several groups, each with options of its own.
  explicit Adadelta(const std::vector<ParamGroup<AdadeltaOptions>>& groups);

  using Optimizer::step;
  // Makes one step, as Optimizer::step() says.
  void step() override;

 protected:
  std::vector<Slot> slots(size_t group) override;
  std::vector<Option> options_of(size_t group) override;
  void check_options(size_t group) const override;
};

}  // namespace tenon::optim
