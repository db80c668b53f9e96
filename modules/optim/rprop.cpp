#include <cmath>

#include <tenon/core/ops/optimizer.h>
#include <tenon/modules/optim/rprop.h>

namespace tenon::optim {

Rprop::Rprop(std::vector<Tensor> params, const RpropOptions& options)
    : Rprop(std::vector<ParamGroup<RpropOptions>>{{std::move(params), options}}) {}

Rprop::Rprop(const std::vector<ParamGroup<RpropOptions>>& groups) : OptimizerOf("Rprop", groups) {
  check_all_options();
}

void Rprop::check_options(size_t group) const {
  const auto& o = options_[group];
  require_not_negative(o.lr, "lr");
  require(o.etas[0] > 0 && o.etas[0] < 1, "etas[0]", o.etas[0], "above 0 and below 1");
  require(o.etas[1] > 1 && std::isfinite(o.etas[1]), "etas[1]", o.etas[1], "finite and above 1");
  require_not_negative(o.step_sizes[0], "step_sizes[0]");
  require(o.step_sizes[1] >= o.step_sizes[0], "step_sizes[1]", o.step_sizes[1],
          "at least step_sizes[0]");
}

void Rprop::step() {
  const Replayed whole(*this);
  check_all_options();
  for (size_t g = 0; g < num_groups(); ++g) {
    const auto& o = options_[g];
    step_group(g, [&](const Bucket& b) {
      rprop_step(b.params, b.grads, b.slots[0], b.slots[1],
                 {.etaminus = o.etas[0],
                  .etaplus = o.etas[1],
                  .step_size_min = o.step_sizes[0],
                  .step_size_max = o.step_sizes[1],
                  .maximize = o.maximize});
    });
  }
}

std::vector<Optimizer::Slot> Rprop::slots(size_t group) {
  return {{"prev", true, true}, {"step_size", true, true, options_[group].lr}};
}

std::vector<Optimizer::Option> Rprop::options_of(size_t group) {
  auto& o = options_[group];
  return {{.name = "lr", .number = &o.lr},
          {.name = "etas.0", .number = &o.etas[0]},
          {.name = "etas.1", .number = &o.etas[1]},
          {.name = "step_sizes.0", .number = &o.step_sizes[0]},
          {.name = "step_sizes.1", .number = &o.step_sizes[1]},
          {.name = "maximize", .flag = &o.maximize}};
}

}  // namespace tenon::optim
