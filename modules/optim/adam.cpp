#include <tenon/core/ops/optimizer.h>
#include <tenon/modules/optim/adam.h>
#include <tenon/modules/repr.h>

namespace tenon::optim {

namespace {

std::vector<ParamGroup<AdamOptions>> as_adam(const std::vector<ParamGroup<AdamWOptions>>& groups) {
  std::vector<ParamGroup<AdamOptions>> result;
  for (auto& [params, o] : groups) {
    AdamOptions options{.lr = o.lr,
                        .betas = o.betas,
                        .eps = o.eps,
                        .weight_decay = o.weight_decay,
                        .amsgrad = o.amsgrad,
                        .maximize = o.maximize};
    result.push_back({params, options});
  }
  return result;
}

}  // namespace

Adam::Adam(std::vector<Tensor> params, const AdamOptions& options)
    : Adam("Adam", false, {{std::move(params), options}}) {}
Adam::Adam(std::vector<ParamGroup<AdamOptions>> groups) : Adam("Adam", false, groups) {}
AdamW::AdamW(std::vector<Tensor> params, const AdamWOptions& options)
    : Adam("AdamW", true, as_adam({{std::move(params), options}})) {}
AdamW::AdamW(const std::vector<ParamGroup<AdamWOptions>>& groups)
    : Adam("AdamW", true, as_adam(groups)) {}

Adam::Adam(const char* name, bool decoupled, const std::vector<ParamGroup<AdamOptions>>& groups)
    : Optimizer(name, params_of(groups)), decoupled_(decoupled) {
  for (auto& group : groups) {
    const AdamOptions& o = group.options;
    nn::require_not_negative(o.lr, name, "lr");
    require(o.betas[0] >= 0 && o.betas[0] < 1, "betas[0]", o.betas[0], "at least 0 and below 1");
    require(o.betas[1] >= 0 && o.betas[1] < 1, "betas[1]", o.betas[1], "at least 0 and below 1");
    nn::require_not_negative(o.eps, name, "eps");
    nn::require_not_negative(o.weight_decay, name, "weight_decay");
    options_.push_back(o);
  }
}

void Adam::step() {
  for (size_t g = 0; g < num_groups(); ++g) {
    const AdamOptions& o = options_[g];
    step_group(g, [&](const Bucket& b) {
      adam_step(b.params, b.grads, b.slots[0], b.slots[1], b.slots[2],
                {.lr = o.lr,
                 .beta1 = o.betas[0],
                 .beta2 = o.betas[1],
                 .eps = o.eps,
                 .weight_decay = o.weight_decay,
                 .amsgrad = o.amsgrad,
                 .decoupled = decoupled_,
                 .maximize = o.maximize,
                 .step = b.step + 1});
    });
  }
}

std::vector<Optimizer::Slot> Adam::slots(size_t group) {
  return {{"exp_avg", true}, {"exp_avg_sq", true}, {"max_exp_avg_sq", options_[group].amsgrad}};
}

std::vector<Optimizer::Option> Adam::options_of(size_t group) {
  auto& o = options_[group];
  return {{.name = "lr", .number = &o.lr},
          {.name = "betas.0", .number = &o.betas[0]},
          {.name = "betas.1", .number = &o.betas[1]},
          {.name = "eps", .number = &o.eps},
          {.name = "weight_decay", .number = &o.weight_decay},
          {.name = "amsgrad", .flag = &o.amsgrad},
          {.name = "maximize", .flag = &o.maximize}};
}

}  // namespace tenon::optim
