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
  for (auto& group : groups) options_.push_back(group.options);
  for (size_t g = 0; g < options_.size(); ++g) Adam::check_options(g);
}

void Adam::check_options(size_t group) const {
  const AdamOptions& o = options_[group];
  require_adam_options(o.lr, o.betas, o.eps, o.weight_decay);
}

void Adam::step() {
  const Replayed whole(*this);
  check_all_options();
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
  return {{"exp_avg", true, true},
          {"exp_avg_sq", true, true},
          {"max_exp_avg_sq", options_[group].amsgrad, true}};
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
