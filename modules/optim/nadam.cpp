#include <tenon/core/ops/optimizer.h>
#include <tenon/modules/optim/nadam.h>

namespace tenon::optim {

NAdam::NAdam(std::vector<Tensor> params, const NAdamOptions& options)
    : NAdam(std::vector<ParamGroup<NAdamOptions>>{{std::move(params), options}}) {}

NAdam::NAdam(const std::vector<ParamGroup<NAdamOptions>>& groups) : OptimizerOf("NAdam", groups) {
  check_all_options();
}

void NAdam::check_options(size_t group) const {
  const auto& o = options_[group];
  require_adam_options(o.lr, o.betas, o.eps, o.weight_decay);
  require_not_negative(o.momentum_decay, "momentum_decay");
}

void NAdam::step() {
  const Replayed whole(*this);
  check_all_options();
  for (size_t g = 0; g < num_groups(); ++g) {
    const auto& o = options_[g];
    step_group(g, [&](Bucket& b) {
      nadam_step(b.params, b.grads, b.slots[0], b.slots[1],
                 {.lr = o.lr,
                  .beta1 = o.betas[0],
                  .beta2 = o.betas[1],
                  .eps = o.eps,
                  .weight_decay = o.weight_decay,
                  .momentum_decay = o.momentum_decay,
                  .mu_product = b.numbers[0],
                  .decoupled = o.decoupled_weight_decay,
                  .maximize = o.maximize,
                  .step = b.step + 1});
      b.numbers[0] *= nadam_mu(o.betas[0], o.momentum_decay, b.step + 1);
    });
  }
}

std::vector<Optimizer::Slot> NAdam::slots(size_t) {
  return {{"exp_avg", true, true}, {"exp_avg_sq", true, true}};
}

std::vector<Optimizer::Option> NAdam::options_of(size_t group) {
  auto& o = options_[group];
  return {{.name = "lr", .number = &o.lr},
          {.name = "betas.0", .number = &o.betas[0]},
          {.name = "betas.1", .number = &o.betas[1]},
          {.name = "eps", .number = &o.eps},
          {.name = "weight_decay", .number = &o.weight_decay},
          {.name = "momentum_decay", .number = &o.momentum_decay},
          {.name = "decoupled_weight_decay", .flag = &o.decoupled_weight_decay},
          {.name = "maximize", .flag = &o.maximize}};
}

}  // namespace tenon::optim
