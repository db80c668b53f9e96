// The optimizer SGD: stochastic gradient descent.
#pragma once

#include <tenon/modules/optim/optimizer.h>

namespace tenon::optim {

struct SGDOptions {
  double lr = 1e-3;         // finite and at least 0
  double momentum = 0;      // finite and at least 0
  double dampening = 0;     // the momentum takes 1 - dampening times the gradient; finite
  double weight_decay = 0;  // this times the parameter is added to its gradient; at least 0
  // Whether it steps by g + momentum v in place of v; needs a momentum above 0 and no dampening.
  bool nesterov = false;
  bool maximize = false;  // whether it steps towards larger values of the objective
};

// Stochastic gradient descent with PyTorch's formula:
//   v = momentum v + (1 - dampening) g, where the first v is g;
//   p = p - lr v.
class TENON_API SGD : public Optimizer {
 public:
  // Makes an optimizer of one group of parameters.
  explicit SGD(std::vector<Tensor> params, const SGDOptions& options = {});
  // Makes one with this learning rate and the other options by default: SGD(params, 1e-3).
  template <class Number>
    requires std::is_arithmetic_v<Number>
  SGD(std::vector<Tensor> params, Number lr)
      : SGD(std::move(params), SGDOptions{.lr = static_cast<double>(lr)}) {}
  // Makes an optimizer of several groups, each with options of its own.
  explicit SGD(std::vector<ParamGroup<SGDOptions>> groups);

  using Optimizer::step;
  // Makes one step, as Optimizer::step() says.
  void step() override;
  // Returns the options of a group, which may be changed; the next step checks them.
  SGDOptions& options(size_t group = 0) { return options_[checked(group)]; }

 protected:
  std::vector<Slot> slots(size_t group) override;
  std::vector<Option> options_of(size_t group) override;
  void check_options(size_t group) const override;

 private:
  std::vector<SGDOptions> options_;
};

}  // namespace tenon::optim
