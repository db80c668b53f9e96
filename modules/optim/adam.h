// The optimizers Adam and AdamW.
#pragma once

#include <array>

#include <tenon/modules/optim/optimizer.h>

namespace tenon::optim {

struct AdamOptions {
  double lr = 1e-3;  // finite and at least 0
  // The decay of the averages of the gradient and of its square, each at least 0 and below 1.
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;        // added to the root of the average square; at least 0
  double weight_decay = 0;  // this times the parameter is added to its gradient; at least 0
  // Whether it divides by the largest average square so far (Reddi et al. 2018).
  bool amsgrad = false;
  bool maximize = false;  // whether it steps towards larger values of the objective
};

// The optimizer of Kingma and Ba, arXiv:1412.6980. Step t does
//   m = beta1 m + (1 - beta1) g, and v = beta2 v + (1 - beta2) g^2;
//   p = p - lr m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps).
class TENON_API Adam : public Optimizer {
 public:
  // Makes an optimizer of one group of parameters.
  explicit Adam(std::vector<Tensor> params, const AdamOptions& options = {});
  // Makes one with this learning rate and the other options by default: Adam(params, 1e-3).
  template <class Number>
    requires std::is_arithmetic_v<Number>
  Adam(std::vector<Tensor> params, Number lr)
      : Adam(std::move(params), AdamOptions{.lr = static_cast<double>(lr)}) {}
  // Makes an optimizer of several groups, each with options of its own.
  explicit Adam(std::vector<ParamGroup<AdamOptions>> groups);

  using Optimizer::step;
  // Makes one step, as Optimizer::step() says.
  void step() override;
  // Returns the options of a group, which may be changed; the next step checks them.
  AdamOptions& options(size_t group = 0) { return options_[checked(group)]; }

 protected:
  // Makes Adam, or AdamW if `decoupled` is true; errors begin with `name`.
  Adam(const char* name, bool decoupled, const std::vector<ParamGroup<AdamOptions>>& groups);
  std::vector<Slot> slots(size_t group) override;
  std::vector<Option> options_of(size_t group) override;
  void check_options(size_t group) const override;

 private:
  bool decoupled_;
  std::vector<AdamOptions> options_;
};

// The options of AdamW, which are those of Adam except for the weight decay.
struct AdamWOptions {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  // Each step multiplies the parameter by 1 - lr weight_decay; at least 0.
  double weight_decay = 1e-2;
  bool amsgrad = false;
  bool maximize = false;
};

// Adam with a weight decay that changes the parameter itself and not its gradient (Loshchilov and
// Hutter, arXiv:1711.05101).
class TENON_API AdamW : public Adam {
 public:
  // Makes an optimizer of one group of parameters.
  explicit AdamW(std::vector<Tensor> params, const AdamWOptions& options = {});
  // Makes one with this learning rate and the other options by default: AdamW(params, 1e-3).
  template <class Number>
    requires std::is_arithmetic_v<Number>
  AdamW(std::vector<Tensor> params, Number lr)
      : AdamW(std::move(params), AdamWOptions{.lr = static_cast<double>(lr)}) {}
  // Makes an optimizer of several groups, each with options of its own.
  explicit AdamW(const std::vector<ParamGroup<AdamWOptions>>& groups);
};

}  // namespace tenon::optim
