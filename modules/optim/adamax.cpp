#include <tenon/core/ops/optimizer.h>
#include <tenon/modules/optim/adamax.h>

namespace tenon::optim {

Adamax::Adamax(std::vector<Tensor> params, const AdamaxOptions& options)
    : Adamax(std::vector<ParamGroup<AdamaxOptions>>{{std::move(params), options}}) {}

Adamax::Adamax(const std::vector<ParamGroup<AdamaxOptions>>& groups)
    : OptimizerOf("Adamax", groups) {
  check_all_options();
}

void Adamax::check_options(size_t group) const {
  const auto& o = options_[group];
  require_adam_options(o.lr, o.betas, o.eps, o.weight_decay);
}

void Adamax::step() {
  const Replayed whole(*this);
  check_all_options();
  for (size_t g = 0; g < num_groups(); ++g) {
    const auto& o = options_[g];
    step_group(g, [&](const Bucket& b) {
      adamax_step(b.params, b.grads, b.slots[0], b.slots[1],
                  {.lr = o.lr,
                   .beta1 = o.betas[0],
                   .beta2 = o.betas[1],
                   .eps = o.eps,
                   .weight_decay = o.weight_decay,
                   .maximize = o.maximize,
                   .step = b.step + 1});
    });
  }
}

std::vector<Optimizer::Slot> Adamax::slots(size_t) {
  return {{"exp_avg", true, true}, {"exp_inf", true, true}};
}

std::vector<Optimizer::Option> Adamax::options_of(size_t group) {
  auto& o = options_[group];
  return {{.name = "lr", .number = &o.lr},
          {.name = "betas.0", .number = &o.betas[0]},
          {.name = "betas.1", .number = &o.betas[1]},
          {.name = "eps", .number = &o.eps},
          {.name = "weight_decay", .number = &o.weight_decay},
          {.name = "maximize", .flag = &o.maximize}};
}

}  // namespace tenon::optim
