#include <tenon/core/ops/optimizer.h>
#include <tenon/modules/optim/adagrad.h>

namespace tenon::optim {

Adagrad::Adagrad(std::vector<Tensor> params, const AdagradOptions& options)
    : Adagrad(std::vector<ParamGroup<AdagradOptions>>{{std::move(params), options}}) {}

Adagrad::Adagrad(const std::vector<ParamGroup<AdagradOptions>>& groups)
    : OptimizerOf("Adagrad", groups) {
  check_all_options();
}

void Adagrad::check_options(size_t group) const {
  const auto& o = options_[group];
  require_not_negative(o.lr, "lr");
  require_not_negative(o.lr_decay, "lr_decay");
  require_not_negative(o.weight_decay, "weight_decay");
  require_not_negative(o.initial_accumulator_value, "initial_accumulator_value");
  require_not_negative(o.eps, "eps");
}

void Adagrad::step() {
  const Replayed whole(*this);
  check_all_options();
  for (size_t g = 0; g < num_groups(); ++g) {
    const auto& o = options_[g];
    step_group(g, [&](const Bucket& b) {
      adagrad_step(b.params, b.grads, b.slots[0],
                   {.lr = o.lr,
                    .lr_decay = o.lr_decay,
                    .weight_decay = o.weight_decay,
                    .eps = o.eps,
                    .maximize = o.maximize,
                    .step = b.step + 1});
    });
  }
}

std::vector<Optimizer::Slot> Adagrad::slots(size_t group) {
  return {{"sum", true, true, options_[group].initial_accumulator_value}};
}

std::vector<Optimizer::Option> Adagrad::options_of(size_t group) {
  auto& o = options_[group];
  return {{.name = "lr", .number = &o.lr},
          {.name = "lr_decay", .number = &o.lr_decay},
          {.name = "weight_decay", .number = &o.weight_decay},
          {.name = "initial_accumulator_value", .number = &o.initial_accumulator_value},
          {.name = "eps", .number = &o.eps},
          {.name = "maximize", .flag = &o.maximize}};
}

}  // namespace tenon::optim
