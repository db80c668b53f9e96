#include <algorithm>
#include <cmath>
#include <numbers>

#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/modules/norm.h>
#include <tenon/modules/optim/swa_utils.h>
#include <tenon/modules/repr.h>

namespace tenon::optim::swa_utils {

AverageFn get_swa_avg_fn() {
  return [](const Tensor& average, const Tensor& value, const Tensor& n) {
    return average + (value - average) / (n + 1).to(average.dtype());
  };
}

AverageFn get_ema_avg_fn(double decay) {
  nn::require(decay >= 0 && decay <= 1, "get_ema_avg_fn", "decay", decay,
              "at least 0 and at most 1");
  return [decay](const Tensor& average, const Tensor& value, const Tensor&) {
    return average * decay + value * (1 - decay);
  };
}

namespace detail {

namespace {
void require_alike(const char* kind, const std::vector<nn::NamedTensor>& average,
                   const std::vector<nn::NamedTensor>& model) {
  for (size_t i = 0; i < average.size(); ++i) {
    const auto &here = average[i], &there = model[i];
    if (here.name != there.name)
      throw ValueError(fmt::format(
          "AveragedModel: {} {} is \"{}\" in the average and \"{}\" in the model; average the "
          "model that it was made of",
          kind, i, here.name, there.name));
    if (here.tensor.defined() && there.tensor.defined() &&
        here.tensor.shape() != there.tensor.shape())
      throw ShapeError(fmt::format(
          "AveragedModel: {} \"{}\" has shape {} in the average and {} in the model; average the "
          "model that it was made of",
          kind, here.name, here.tensor.shape(), there.tensor.shape()));
  }
}
}  // namespace

void average_into(nn::ModuleRef target, nn::ModuleRef source, const AverageFn& avg_fn,
                  bool use_buffers, const Tensor& num_averaged) {
  const NoGrad guard;
  auto take = [&](Tensor average, const Tensor& from, bool averaged) {
    const Tensor value = from.detach().to(average.device());
    if (!averaged || !is_floating_point(average.dtype())) {
      average.copy_(value);
      return;
    }
    const Tensor n = num_averaged.to(average.device());
    average.copy_(where(eq(n, 0), value, avg_fn(average.detach(), value, n)));
  };
  const auto to = nn::named_parameters(target), from = nn::named_parameters(source);
  const auto buffers_to = nn::named_buffers(target), buffers_from = nn::named_buffers(source);
  if (to.size() != from.size() || buffers_to.size() != buffers_from.size())
    throw ValueError(fmt::format(
        "AveragedModel: it has {} parameters and {} buffers, the model {} and {}; average the "
        "model that it was made of",
        to.size(), buffers_to.size(), from.size(), buffers_from.size()));
  require_alike("parameter", to, from);  // all of them, before the first changes
  require_alike("buffer", buffers_to, buffers_from);
  for (size_t i = 0; i < to.size(); ++i) take(to[i].tensor, from[i].tensor, true);
  for (size_t i = 0; i < buffers_to.size(); ++i)
    take(buffers_to[i].tensor, buffers_from[i].tensor, use_buffers);
  Tensor(num_averaged).copy_(num_averaged.detach() + 1);
}

BatchNormAverages::BatchNormAverages(nn::ModuleRef module) {
  struct TrainingFlags : nn::FieldVisitor {
    std::vector<std::pair<bool*, bool>>* flags = nullptr;
    void training(bool& flag) override { flags->emplace_back(&flag, flag); }
  } flags;
  flags.flags = &training_;
  nn::apply(module, [&](nn::ModuleRef m) {
    m.type->visit(m.self, flags);
    nn::BatchNormState* norm = nn::detail::batch_norm_of(m);
    if (!norm || !norm->running_mean.defined()) return;
    norm->running_mean.zero_();
    norm->running_var.fill_(1);
    norm->num_batches_tracked.zero_();
    momenta_.emplace_back(&norm->options.momentum, norm->options.momentum);
    norm->options.momentum = std::nullopt;
  });
  if (any()) nn::train(module);
}

BatchNormAverages::~BatchNormAverages() {
  for (auto& [place, momentum] : momenta_) *place = momentum;
  for (auto& [place, training] : training_) *place = training;
}

}  // namespace detail

SWALR::SWALR(Optimizer& optimizer, double swa_lr, int64_t anneal_epochs,
             const std::string& anneal_strategy)
    : LRScheduler("SWALR", optimizer),
      swa_lr_(swa_lr),
      anneal_epochs_(anneal_epochs),
      cosine_(anneal_strategy == "cos") {
  require(swa_lr >= 0 && std::isfinite(swa_lr), "swa_lr", swa_lr, "finite and at least 0");
  require(anneal_epochs >= 0, "anneal_epochs", static_cast<double>(anneal_epochs), "at least 0");
  if (!cosine_ && anneal_strategy != "linear")
    refuse(fmt::format("anneal_strategy is \"{}\"; it has to be \"cos\" or \"linear\"",
                       anneal_strategy));
  begin_at_present_rates();
}

// The part of swa_lr in the rate of an epoch.
double SWALR::part(int64_t epoch) const {
  const double all = static_cast<double>(std::max<int64_t>(1, anneal_epochs_));
  const double t = std::clamp(static_cast<double>(epoch) / all, 0.0, 1.0);
  return cosine_ ? (1 - std::cos(std::numbers::pi * t)) / 2 : t;
}

double SWALR::next_lr(size_t, double lr) {
  const double before = part(last_epoch_ - 1), now = part(last_epoch_);
  const double start = before == 1 ? swa_lr_ : (lr - before * swa_lr_) / (1 - before);
  return swa_lr_ * now + start * (1 - now);
}

std::vector<SchedulerNumber> SWALR::numbers() {
  auto result = LRScheduler::numbers();
  result.push_back({.name = "swa_lr", .real = &swa_lr_});
  result.push_back({.name = "anneal_epochs", .whole = &anneal_epochs_});
  return result;
}

std::vector<std::pair<std::string, std::string>> SWALR::texts() const {
  auto result = LRScheduler::texts();
  result.emplace_back("anneal_strategy", cosine_ ? "cos" : "linear");
  return result;
}

}  // namespace tenon::optim::swa_utils
