// The optimizer Adamax.
#pragma once

#include <array>

#include <tenon/modules/optim/optimizer.h>

namespace tenon::optim {

struct AdamaxOptions {
  double lr = 2e-3;  // finite and at least 0
  // The decay of the averages of the gradient and of its largest size, each at least 0 and below 1.
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;        // added to the size of the gradient; at least 0
  double weight_decay = 0;  // this times the parameter is added to its gradient; at least 0
  bool maximize = false;    // whether it steps towards larger values of the objective
};

// Adam with the largest size of a gradient in place of its average square (Kingma and Ba,
// arXiv:1412.6980, section 7.1). Step t does
//   m = beta1 m + (1 - beta1) g, and u = max(beta2 u, |g| + eps);
//   p = p - lr m / (1 - beta1^t) / u.
class TENON_API Adamax final : public OptimizerOf<AdamaxOptions> {
 public:
  // Makes an optimizer of one group of parameters.
  explicit Adamax(std::vector<Tensor> params, const AdamaxOptions& options = {});
  // Makes one with this learning rate and the other options by default: Adamax(params, 1e-3).
  template <class Number>
    requires std::is_arithmetic_v<Number>
  Adamax(std::vector<Tensor> params, Number lr)
      : Adamax(std::move(params), AdamaxOptions{.lr = static_cast<double>(lr)}) {}
  // Makes an optimizer of several groups, each with options of its own.
  explicit Adamax(const std::vector<ParamGroup<AdamaxOptions>>& groups);

  using Optimizer::step;
  // Makes one step, as Optimizer::step() says.
  void step() override;

 protected:
  std::vector<Slot> slots(size_t group) override;
  std::vector<Option> options_of(size_t group) override;
  void check_options(size_t group) const override;
};

}  // namespace tenon::optim
