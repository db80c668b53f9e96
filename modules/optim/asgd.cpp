#include <algorithm>
#include <cmath>

#include <tenon/core/ops/optimizer.h>
#include <tenon/modules/optim/asgd.h>

namespace tenon::optim {

ASGD::ASGD(std::vector<Tensor> params, const ASGDOptions& options)
    : ASGD(std::vector<ParamGroup<ASGDOptions>>{{std::move(params), options}}) {}

ASGD::ASGD(const std::vector<ParamGroup<ASGDOptions>>& groups) : OptimizerOf("ASGD", groups) {
  check_all_options();
}

void ASGD::check_options(size_t group) const {
  const auto& o = options_[group];
  require_not_negative(o.lr, "lr");
  require_not_negative(o.lambd, "lambd");
  require_not_negative(o.alpha, "alpha");
  require_not_negative(o.weight_decay, "weight_decay");
  require(std::isfinite(o.t0), "t0", o.t0, "finite");
}

void ASGD::step() {
  const Replayed whole(*this);
  check_all_options();
  for (size_t g = 0; g < num_groups(); ++g) {
    const auto& o = options_[g];
    step_group(g, [&](Bucket& b) {
      asgd_step(b.params, b.grads, b.slots[0],
                {.eta = b.numbers[0],
                 .lambd = o.lambd,
                 .mu = b.numbers[1],
                 .weight_decay = o.weight_decay,
                 .maximize = o.maximize});
      const double step = static_cast<double>(b.step + 1);
      b.numbers[0] = static_cast<float>(o.lr / std::pow(1 + o.lambd * o.lr * step, o.alpha));
      b.numbers[1] = static_cast<float>(1 / std::max(1.0, step - o.t0));
    });
  }
}

std::vector<Optimizer::Slot> ASGD::slots(size_t) { return {{"ax", true, true}}; }

std::vector<Optimizer::Option> ASGD::options_of(size_t group) {
  auto& o = options_[group];
  return {{.name = "lr", .number = &o.lr},
          {.name = "lambd", .number = &o.lambd},
          {.name = "alpha", .number = &o.alpha},
          {.name = "t0", .number = &o.t0},
          {.name = "weight_decay", .number = &o.weight_decay},
          {.name = "maximize", .flag = &o.maximize}};
}

}  // namespace tenon::optim
