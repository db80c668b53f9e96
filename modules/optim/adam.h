// The optimizers Adam and AdamW.
#pragma once

#include <array>

#include <tenon/modules/optim/optimizer.h>

namespace tenon::optim {

struct AdamOptions {
  double lr = 1e-3;  // finite and at least 0
  // The decay of the averages of the gradient and of its square, each at least 0 and below 1.
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;        // added to the root of the average square
  double weight_decay = 0;  // this times the parameter is added to its gradient
  bool amsgrad = false;     // divides by the largest average so far (Reddi et al. 2018)
  bool maximize = false;    // steps towards larger values of the objective
};

// Adam (Kingma and Ba, arXiv:1412.6980). Constructors throw a ValueError for an option outside its
// range.
class TENON_API Adam : public Optimizer {
 public:
  explicit Adam(std::vector<Tensor> params, const AdamOptions& options = {});
  // The learning rate alone: Adam(params, 1e-3).
  template <class Number>
    requires std::is_arithmetic_v<Number>
  Adam(std::vector<Tensor> params, Number lr)
      : Adam(std::move(params), AdamOptions{.lr = static_cast<double>(lr)}) {}
  explicit Adam(std::vector<ParamGroup<AdamOptions>> groups);

  using Optimizer::step;
  void step() override;
  // Returns the options of a group, which may be changed; the next step checks them.
  AdamOptions& options(size_t group = 0) { return options_[checked(group)]; }

 protected:
  Adam(const char* name, bool decoupled, const std::vector<ParamGroup<AdamOptions>>& groups);
  std::vector<Slot> slots(size_t group) override;
  std::vector<Option> options_of(size_t group) override;
  void check_options(size_t group) const override;

 private:
  bool decoupled_;
  std::vector<AdamOptions> options_;
};

struct AdamWOptions {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;  // each step shrinks the parameter by the factor 1 - lr weight_decay
  bool amsgrad = false;
  bool maximize = false;
};

// AdamW: Adam whose weight decay changes the parameter itself and not its gradient (Loshchilov and
// Hutter, arXiv:1711.05101). The other options are those of Adam.
class TENON_API AdamW : public Adam {
 public:
  explicit AdamW(std::vector<Tensor> params, const AdamWOptions& options = {});
  // The learning rate alone: AdamW(params, 1e-3).
  template <class Number>
    requires std::is_arithmetic_v<Number>
  AdamW(std::vector<Tensor> params, Number lr)
      : AdamW(std::move(params), AdamWOptions{.lr = static_cast<double>(lr)}) {}
  explicit AdamW(const std::vector<ParamGroup<AdamWOptions>>& groups);
};

}  // namespace tenon::optim
