#include <cmath>

#include <tenon/core/ops/optimizer.h>
#include <tenon/modules/optim/sgd.h>
#include <tenon/modules/repr.h>

namespace tenon::optim {

SGD::SGD(std::vector<Tensor> params, const SGDOptions& options)
    : SGD(std::vector<ParamGroup<SGDOptions>>{{std::move(params), options}}) {}

SGD::SGD(std::vector<ParamGroup<SGDOptions>> groups) : Optimizer("SGD", params_of(groups)) {
  for (auto& group : groups) options_.push_back(group.options);
  for (size_t g = 0; g < options_.size(); ++g) SGD::check_options(g);
}

void SGD::check_options(size_t group) const {
  const SGDOptions& o = options_[group];
  require_not_negative(o.lr, "lr");
  require_not_negative(o.momentum, "momentum");
  require_not_negative(o.weight_decay, "weight_decay");
  require(std::isfinite(o.dampening), "dampening", o.dampening, "finite");
  if (o.nesterov) {
    require(o.momentum > 0, "momentum", o.momentum, "above 0 for nesterov");
    require(o.dampening == 0, "dampening", o.dampening, "0 for nesterov");
  }
}

void SGD::step() {
  const Replayed whole(*this);
  check_all_options();
  for (size_t g = 0; g < num_groups(); ++g) {
    const SGDOptions& o = options_[g];
    step_group(g, [&](const Bucket& b) {
      sgd_step(b.params, b.grads, b.slots[0],
               {.lr = o.lr,
                .momentum = o.momentum,
                .dampening = o.dampening,
                .weight_decay = o.weight_decay,
                .nesterov = o.nesterov,
                .maximize = o.maximize,
                .first = b.fresh});
    });
  }
}

std::vector<Optimizer::Slot> SGD::slots(size_t group) {
  // Not steady: the buffer does not start at zero, but with the first gradient.
  return {{"momentum_buffer", options_[group].momentum != 0, false}};
}

std::vector<Optimizer::Option> SGD::options_of(size_t group) {
  auto& o = options_[group];
  return {{.name = "lr", .number = &o.lr},
          {.name = "momentum", .number = &o.momentum},
          {.name = "dampening", .number = &o.dampening},
          {.name = "weight_decay", .number = &o.weight_decay},
          {.name = "nesterov", .flag = &o.nesterov},
          {.name = "maximize", .flag = &o.maximize}};
}

}  // namespace tenon::optim
