// The optimizer SGD: stochastic gradient descent.
#pragma once

#include <tenon/modules/optim/optimizer.h>

namespace tenon::optim {

struct SGDOptions {
  double lr = 1e-3;         // finite and at least 0
  double momentum = 0;      // finite and at least 0
  double dampening = 0;     // the momentum buffer takes 1 - dampening times the gradient
  double weight_decay = 0;  // this times the parameter is added to its gradient
  bool nesterov = false;    // needs a momentum above 0 and no dampening
  bool maximize = false;    // steps towards larger values of the objective
};

// Stochastic gradient descent with PyTorch's formula:
//   v = momentum v + (1 - dampening) g, where the first v is g;
//   p = p - lr v.
// Constructors throw a ValueError for an option outside its range.
class TENON_API SGD : public Optimizer {
 public:
  explicit SGD(std::vector<Tensor> params, const SGDOptions& options = {});
  // The learning rate alone: SGD(params, 1e-3).
  template <class Number>
    requires std::is_arithmetic_v<Number>
  SGD(std::vector<Tensor> params, Number lr)
      : SGD(std::move(params), SGDOptions{.lr = static_cast<double>(lr)}) {}
  explicit SGD(std::vector<ParamGroup<SGDOptions>> groups);

  using Optimizer::step;
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
