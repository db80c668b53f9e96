#include <tenon/core/ops/optimizer.h>
#include <tenon/modules/optim/adadelta.h>

namespace tenon::optim {

Adadelta::Adadelta(std::vector<Tensor> params, const AdadeltaOptions& options)
    : Adadelta(std::vector<ParamGroup<AdadeltaOptions>>{{std::move(params), options}}) {}

Adadelta::Adadelta(const std::vector<ParamGroup<AdadeltaOptions>>& groups)
    : OptimizerOf("Adadelta", groups) {
  check_all_options();
}

void Adadelta::check_options(size_t group) const {
  const auto& o = options_[group];
  require_not_negative(o.lr, "lr");
  require(o.rho >= 0 && o.rho <= 1, "rho", o.rho, "at least 0 and at most 1");
  require_not_negative(o.eps, "eps");
  require_not_negative(o.weight_decay, "weight_decay");
}

void Adadelta::step() {
  const Replayed whole(*this);
  check_all_options();
  for (size_t g = 0; g < num_groups(); ++g) {
    const auto& o = options_[g];
    step_group(g, [&](const Bucket& b) {
      adadelta_step(b.params, b.grads, b.slots[0], b.slots[1],
                    {.lr = o.lr,
                     .rho = o.rho,
                     .eps = o.eps,
                     .weight_decay = o.weight_decay,
                     .maximize = o.maximize});
    });
  }
}

std::vector<Optimizer::Slot> Adadelta::slots(size_t) {
  return {{"square_avg", true, true}, {"acc_delta", true, true}};
}

std::vector<Optimizer::Option> Adadelta::options_of(size_t group) {
  auto& o = options_[group];
  return {{.name = "lr", .number = &o.lr},
          {.name = "rho", .number = &o.rho},
          {.name = "eps", .number = &o.eps},
          {.name = "weight_decay", .number = &o.weight_decay},
          {.name = "maximize", .flag = &o.maximize}};
}

}  // namespace tenon::optim
