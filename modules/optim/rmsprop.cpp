#include <tenon/core/ops/optimizer.h>
#include <tenon/modules/optim/rmsprop.h>

namespace tenon::optim {

RMSprop::RMSprop(std::vector<Tensor> params, const RMSpropOptions& options)
    : RMSprop(std::vector<ParamGroup<RMSpropOptions>>{{std::move(params), options}}) {}

RMSprop::RMSprop(const std::vector<ParamGroup<RMSpropOptions>>& groups)
    : OptimizerOf("RMSprop", groups) {
  check_all_options();
}

void RMSprop::check_options(size_t group) const {
  const auto& o = options_[group];
  require_not_negative(o.lr, "lr");
  require_not_negative(o.alpha, "alpha");
  require_not_negative(o.eps, "eps");
  require_not_negative(o.weight_decay, "weight_decay");
  require_not_negative(o.momentum, "momentum");
}

void RMSprop::step() {
  const Replayed whole(*this);
  check_all_options();
  for (size_t g = 0; g < num_groups(); ++g) {
    const auto& o = options_[g];
    step_group(g, [&](const Bucket& b) {
      rmsprop_step(b.params, b.grads, b.slots[0], b.slots[1], b.slots[2],
                   {.lr = o.lr,
                    .alpha = o.alpha,
                    .eps = o.eps,
                    .weight_decay = o.weight_decay,
                    .momentum = o.momentum,
                    .centered = o.centered,
                    .maximize = o.maximize});
    });
  }
}

std::vector<Optimizer::Slot> RMSprop::slots(size_t group) {
  return {{"square_avg", true, true},
          {"grad_avg", options_[group].centered, true},
          {"momentum_buffer", options_[group].momentum != 0, true}};
}

std::vector<Optimizer::Option> RMSprop::options_of(size_t group) {
  auto& o = options_[group];
  return {{.name = "lr", .number = &o.lr},
          {.name = "alpha", .number = &o.alpha},
          {.name = "eps", .number = &o.eps},
          {.name = "weight_decay", .number = &o.weight_decay},
          {.name = "momentum", .number = &o.momentum},
          {.name = "centered", .flag = &o.centered},
          {.name = "maximize", .flag = &o.maximize}};
}

}  // namespace tenon::optim
