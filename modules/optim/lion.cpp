#include <tenon/core/ops/optimizer.h>
#include <tenon/modules/optim/lion.h>

namespace tenon::optim {

Lion::Lion(std::vector<Tensor> params, const LionOptions& options)
    : Lion(std::vector<ParamGroup<LionOptions>>{{std::move(params), options}}) {}

Lion::Lion(const std::vector<ParamGroup<LionOptions>>& groups) : OptimizerOf("Lion", groups) {
  check_all_options();
}

void Lion::check_options(size_t group) const {
  const auto& o = options_[group];
  require_not_negative(o.lr, "lr");
  require_fraction(o.betas[0], "betas[0]");
  require_fraction(o.betas[1], "betas[1]");
  require_not_negative(o.weight_decay, "weight_decay");
}

void Lion::step() {
  const Replayed whole(*this);
  check_all_options();
  for (size_t g = 0; g < num_groups(); ++g) {
    const auto& o = options_[g];
    step_group(g, [&](const Bucket& b) {
      lion_step(b.params, b.grads, b.slots[0],
                {.lr = o.lr,
                 .beta1 = o.betas[0],
                 .beta2 = o.betas[1],
                 .weight_decay = o.weight_decay,
                 .maximize = o.maximize});
    });
  }
}

std::vector<Optimizer::Slot> Lion::slots(size_t) { return {{"exp_avg", true, true}}; }

std::vector<Optimizer::Option> Lion::options_of(size_t group) {
  auto& o = options_[group];
  return {{.name = "lr", .number = &o.lr},
          {.name = "betas.0", .number = &o.betas[0]},
          {.name = "betas.1", .number = &o.betas[1]},
          {.name = "weight_decay", .number = &o.weight_decay},
          {.name = "maximize", .flag = &o.maximize}};
}

}  // namespace tenon::optim
