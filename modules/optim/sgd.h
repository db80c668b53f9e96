// Stochastic gradient descent.
#pragma once

#include <tenon/modules/optim/optimizer.h>

namespace tenon::optim {

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;     // of the gradient that goes into the momentum buffer
  double weight_decay = 0;  // times the parameter, added to its gradient
  bool nesterov = false;    // needs momentum and no dampening
  bool maximize = false;
};

// v = momentum v + (1 - dampening) g, p = p - lr v; PyTorch's formula: the first v is g.
class TENON_API SGD : public Optimizer {
 public:
  explicit SGD(std::vector<Tensor> params, const SGDOptions& options = {});
  explicit SGD(std::vector<ParamGroup<SGDOptions>> groups);

  void step() override;
  SGDOptions& options(size_t group = 0) { return options_.at(group); }

 protected:
  std::vector<Slot> slots(size_t group) override;
  std::vector<Option> options_of(size_t group) override;

 private:
  std::vector<SGDOptions> options_;
};

}  // namespace tenon::optim
