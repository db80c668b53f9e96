#include <tenon/core/ops/optimizer.h>
#include <tenon/modules/optim/radam.h>

namespace tenon::optim {

RAdam::RAdam(std::vector<Tensor> params, const RAdamOptions& options)
    : RAdam(std::vector<ParamGroup<RAdamOptions>>{{std::move(params), options}}) {}

RAdam::RAdam(const std::vector<ParamGroup<RAdamOptions>>& groups) : OptimizerOf("RAdam", groups) {
  check_all_options();
}

void RAdam::check_options(size_t group) const {
  const auto& o = options_[group];
  require_adam_options(o.lr, o.betas, o.eps, o.weight_decay);
}

void RAdam::step() {
  const Replayed whole(*this);
  check_all_options();
  for (size_t g = 0; g < num_groups(); ++g) {
    const auto& o = options_[g];
    step_group(g, [&](const Bucket& b) {
      radam_step(b.params, b.grads, b.slots[0], b.slots[1],
                 {.lr = o.lr,
                  .beta1 = o.betas[0],
                  .beta2 = o.betas[1],
                  .eps = o.eps,
                  .weight_decay = o.weight_decay,
                  .decoupled = o.decoupled_weight_decay,
                  .maximize = o.maximize,
                  .step = b.step + 1});
    });
  }
}

std::vector<Optimizer::Slot> RAdam::slots(size_t) {
  return {{"exp_avg", true, true}, {"exp_avg_sq", true, true}};
}

std::vector<Optimizer::Option> RAdam::options_of(size_t group) {
  auto& o = options_[group];
  return {{.name = "lr", .number = &o.lr},
          {.name = "betas.0", .number = &o.betas[0]},
          {.name = "betas.1", .number = &o.betas[1]},
          {.name = "eps", .number = &o.eps},
          {.name = "weight_decay", .number = &o.weight_decay},
          {.name = "decoupled_weight_decay", .flag = &o.decoupled_weight_decay},
          {.name = "maximize", .flag = &o.maximize}};
}

}  // namespace tenon::optim
