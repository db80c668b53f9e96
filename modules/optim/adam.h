// Adam and AdamW.
#pragma once

#include <array>

#include <tenon/modules/optim/optimizer.h>

namespace tenon::optim {

struct AdamOptions {
  double lr = 1e-3;
  std::array<double, 2> betas = {
      0.9, 0.999};  // how long the averages of the gradient and its square remember
  double eps = 1e-8;
  double weight_decay = 0;  // times the parameter, added to its gradient
  bool amsgrad = false;     // divide by the largest average so far (Reddi et al. 2018)
  bool maximize = false;
};

// Kingma and Ba, arXiv:1412.6980.
class TENON_API Adam : public Optimizer {
 public:
  explicit Adam(std::vector<Tensor> params, const AdamOptions& options = {});
  explicit Adam(std::vector<ParamGroup<AdamOptions>> groups);

  void step() override;
  AdamOptions& options(size_t group = 0) { return options_.at(group); }

 protected:
  Adam(const char* name, bool decoupled, const std::vector<ParamGroup<AdamOptions>>& groups);
  std::vector<Slot> slots(size_t group) override;
  std::vector<Option> options_of(size_t group) override;

 private:
  bool decoupled_;
  std::vector<AdamOptions> options_;
};

struct AdamWOptions {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;  // times lr, shrinks the parameter itself
  bool amsgrad = false;
  bool maximize = false;
};

// Adam with weight decay that does not go through the averages (Loshchilov and Hutter,
// arXiv:1711.05101).
class TENON_API AdamW : public Adam {
 public:
  explicit AdamW(std::vector<Tensor> params, const AdamWOptions& options = {});
  explicit AdamW(const std::vector<ParamGroup<AdamWOptions>>& groups);
};

}  // namespace tenon::optim
