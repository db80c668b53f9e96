#include <algorithm>
#include <cmath>
#include <numbers>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/modules/optim/lr_scheduler.h>
#include <tenon/modules/optim/state.h>
#include <tenon/modules/repr.h>

namespace tenon::optim {

// ---- what all have

SavedSchedule::~SavedSchedule() = default;

void SavedSchedule::require(bool ok, const char* what, double value, const char* wanted) const {
  nn::require(ok, name_, what, value, wanted);
}

void SavedSchedule::refuse(const std::string& why) const {
  throw ValueError(fmt::format("{}: {}", name_, why));
}

std::vector<double> SavedSchedule::get_last_lr() const {
  std::vector<double> rates;
  for (size_t g = 0; g < optimizer_->num_groups(); ++g) rates.push_back(optimizer_->lr(g));
  return rates;
}

SchedulerState SavedSchedule::state_dict() {
  SchedulerState state;
  for (auto& n : numbers()) {
    const double value = n.real ? *n.real : static_cast<double>(*n.whole);
    if (value != n.absent) state.numbers.emplace_back(n.name, value);
  }
  state.texts = texts();
  return state;
}

std::function<void()> SavedSchedule::prepare_load(const SchedulerState& state) {
  detail::StateNumbers from(name_, state.numbers, "a scheduler of this kind");
  std::vector<std::pair<SchedulerNumber, double>> values;
  for (auto& n : numbers()) {
    const double value = n.whole ? static_cast<double>(from.take_count(n.name, "a whole number"))
                                 : from.take(n.name, n.absent);
    values.emplace_back(n, value);
  }
  from.require_all_taken();
  const auto own = texts();
  for (auto& [key, text] : state.texts) {
    const auto same = std::find_if(own.begin(), own.end(), [&](auto& t) { return t.first == key; });
    if (same == own.end() || same->second != text)
      from.fail(fmt::format("\"{}\" is \"{}\" there and {} here", printable(key), printable(text),
                            same == own.end() ? "nothing" : '"' + same->second + '"'));
  }
  return [values = std::move(values)] {
    for (auto& [n, value] : values) {
      if (n.real) *n.real = value;
      if (n.whole) *n.whole = static_cast<int64_t>(value);
    }
  };
}

LRScheduler::LRScheduler(const char* name, Optimizer& optimizer) : SavedSchedule(name, optimizer) {
  for (size_t g = 0; g < optimizer.num_groups(); ++g) base_lrs_.push_back(optimizer.initial_lr(g));
}

std::vector<SchedulerNumber> LRScheduler::numbers() {
  std::vector<SchedulerNumber> result = {{.name = "last_epoch", .whole = &last_epoch_}};
  for (size_t g = 0; g < base_lrs_.size(); ++g)
    result.push_back({.name = fmt::format("base_lrs.{}", g), .real = &base_lrs_[g]});
  return result;
}

void LRScheduler::begin(const std::vector<double>& rates) {
  last_epoch_ = 0;
  enter_epoch();
  for (size_t g = 0; g < rates.size(); ++g)
    optimizer().set_lr(std::max(first_lr(g, rates[g]), 0.0), g);
}

void LRScheduler::step() {
  ++last_epoch_;
  enter_epoch();
  for (size_t g = 0; g < base_lrs_.size(); ++g)
    optimizer().set_lr(std::max(next_lr(g, optimizer().lr(g)), 0.0), g);
}

// ---- functions of the epoch

namespace {

std::vector<LRLambda> checked_lambdas(const char* name, std::vector<LRLambda> lambdas,
                                      const Optimizer& optimizer) {
  if (lambdas.size() != optimizer.num_groups())
    throw ValueError(fmt::format("{}: {} functions for {} groups of parameters; each needs one",
                                 name, lambdas.size(), optimizer.num_groups()));
  for (auto& f : lambdas)
    if (!f) throw ValueError(fmt::format("{}: a function is empty", name));
  return lambdas;
}

}  // namespace

LambdaLR::LambdaLR(Optimizer& optimizer, LRLambda lr_lambda)
    : LambdaLR(optimizer, std::vector<LRLambda>(optimizer.num_groups(), std::move(lr_lambda))) {}
LambdaLR::LambdaLR(Optimizer& optimizer, std::vector<LRLambda> lr_lambdas)
    : LRScheduler("LambdaLR", optimizer),
      lambdas_(checked_lambdas("LambdaLR", std::move(lr_lambdas), optimizer)) {
  begin_at_present_rates();
}
double LambdaLR::next_lr(size_t group, double) {
  return base_lr(group) * lambdas_[group](last_epoch_);
}

MultiplicativeLR::MultiplicativeLR(Optimizer& optimizer, LRLambda lr_lambda)
    : MultiplicativeLR(optimizer,
                       std::vector<LRLambda>(optimizer.num_groups(), std::move(lr_lambda))) {}
MultiplicativeLR::MultiplicativeLR(Optimizer& optimizer, std::vector<LRLambda> lr_lambdas)
    : LRScheduler("MultiplicativeLR", optimizer),
      lambdas_(checked_lambdas("MultiplicativeLR", std::move(lr_lambdas), optimizer)) {
  begin_at_present_rates();
}
double MultiplicativeLR::next_lr(size_t group, double lr) {
  return lr * lambdas_[group](last_epoch_);
}

void MultiplicativeLR::take_over() {
  last_epoch_ = -1;
  step();
}

// ---- steps

namespace {

std::vector<SchedulerNumber> with(std::vector<SchedulerNumber> numbers,
                                  std::initializer_list<SchedulerNumber> more) {
  numbers.insert(numbers.end(), more);
  return numbers;
}

}  // namespace

StepLR::StepLR(Optimizer& optimizer, int64_t step_size, double gamma)
    : LRScheduler("StepLR", optimizer), step_size_(step_size), gamma_(gamma) {
  require(step_size > 0, "step_size", static_cast<double>(step_size), "at least 1");
  require(gamma >= 0 && std::isfinite(gamma), "gamma", gamma, "finite and at least 0");
  begin_at_present_rates();
}
double StepLR::next_lr(size_t, double lr) {
  return last_epoch_ % step_size_ == 0 ? lr * gamma_ : lr;
}
std::vector<SchedulerNumber> StepLR::numbers() {
  return with(LRScheduler::numbers(),
              {{.name = "step_size", .whole = &step_size_}, {.name = "gamma", .real = &gamma_}});
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma)
    : LRScheduler("MultiStepLR", optimizer), milestones_(std::move(milestones)), gamma_(gamma) {
  require(gamma >= 0 && std::isfinite(gamma), "gamma", gamma, "finite and at least 0");
  begin_at_present_rates();
}
double MultiStepLR::next_lr(size_t, double lr) {
  const auto times = std::count(milestones_.begin(), milestones_.end(), last_epoch_);
  return lr * std::pow(gamma_, static_cast<double>(times));
}
std::vector<SchedulerNumber> MultiStepLR::numbers() {
  auto result = with(LRScheduler::numbers(), {{.name = "gamma", .real = &gamma_}});
  for (size_t i = 0; i < milestones_.size(); ++i)
    result.push_back({.name = fmt::format("milestones.{}", i), .whole = &milestones_[i]});
  return result;
}

ConstantLR::ConstantLR(Optimizer& optimizer, double factor, int64_t total_iters)
    : LRScheduler("ConstantLR", optimizer), factor_(factor), total_iters_(total_iters) {
  // PyTorch takes 0 as well, but cannot go back from it.
  require(factor > 0 && factor <= 1, "factor", factor, "above 0 and at most 1");
  require(total_iters >= 0, "total_iters", static_cast<double>(total_iters), "at least 0");
  begin_at_present_rates();
}
void ConstantLR::take_over() {
  begin(base_lrs_);
  for (size_t g = 0; total_iters_ == 0 && g < base_lrs_.size(); ++g)
    optimizer().set_lr(base_lr(g), g);
}
double ConstantLR::next_lr(size_t, double lr) {
  return last_epoch_ == total_iters_ ? lr * (1 / factor_) : lr;
}
std::vector<SchedulerNumber> ConstantLR::numbers() {
  return with(LRScheduler::numbers(), {{.name = "factor", .real = &factor_},
                                       {.name = "total_iters", .whole = &total_iters_}});
}

LinearLR::LinearLR(Optimizer& optimizer, double start_factor, double end_factor,
                   int64_t total_iters)
    : LRScheduler("LinearLR", optimizer),
      start_factor_(start_factor),
      end_factor_(end_factor),
      total_iters_(total_iters) {
  require(start_factor > 0 && start_factor <= 1, "start_factor", start_factor,
          "above 0 and at most 1");
  require(end_factor >= 0 && end_factor <= 1, "end_factor", end_factor, "at least 0 and at most 1");
  require(total_iters >= 0, "total_iters", static_cast<double>(total_iters), "at least 0");
  begin_at_present_rates();
}
double LinearLR::next_lr(size_t, double lr) {
  if (last_epoch_ > total_iters_) return lr;
  const double change = end_factor_ - start_factor_;
  return lr * (1 + change / (static_cast<double>(total_iters_) * start_factor_ +
                             static_cast<double>(last_epoch_ - 1) * change));
}
std::vector<SchedulerNumber> LinearLR::numbers() {
  return with(LRScheduler::numbers(), {{.name = "start_factor", .real = &start_factor_},
                                       {.name = "end_factor", .real = &end_factor_},
                                       {.name = "total_iters", .whole = &total_iters_}});
}

// ---- curves

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma)
    : LRScheduler("ExponentialLR", optimizer), gamma_(gamma) {
  require(gamma >= 0 && std::isfinite(gamma), "gamma", gamma, "finite and at least 0");
  begin_at_present_rates();
}
std::vector<SchedulerNumber> ExponentialLR::numbers() {
  return with(LRScheduler::numbers(), {{.name = "gamma", .real = &gamma_}});
}

PolynomialLR::PolynomialLR(Optimizer& optimizer, int64_t total_iters, double power)
    : LRScheduler("PolynomialLR", optimizer), total_iters_(total_iters), power_(power) {
  require(total_iters > 0, "total_iters", static_cast<double>(total_iters), "at least 1");
  require(power >= 0 && std::isfinite(power), "power", power, "finite and at least 0");
  begin_at_present_rates();
}
double PolynomialLR::next_lr(size_t, double lr) {
  if (last_epoch_ > total_iters_) return lr;
  const double total = static_cast<double>(total_iters_), epoch = static_cast<double>(last_epoch_);
  return lr * std::pow((1 - epoch / total) / (1 - (epoch - 1) / total), power_);
}
std::vector<SchedulerNumber> PolynomialLR::numbers() {
  return with(LRScheduler::numbers(), {{.name = "total_iters", .whole = &total_iters_},
                                       {.name = "power", .real = &power_}});
}

namespace {

// From 1 at 0 to 0 at 1, and up again.
double cosine(double part) { return (1 + std::cos(std::numbers::pi * part)) / 2; }

}  // namespace

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min)
    : LRScheduler("CosineAnnealingLR", optimizer), T_max_(T_max), eta_min_(eta_min) {
  require(T_max > 0, "T_max", static_cast<double>(T_max), "at least 1");
  require(eta_min >= 0 && std::isfinite(eta_min), "eta_min", eta_min, "finite and at least 0");
  begin_at_present_rates();
}
double CosineAnnealingLR::next_lr(size_t group, double lr) {
  const double epoch = static_cast<double>(last_epoch_), total = static_cast<double>(T_max_);
  // After the lowest point the factor below would be 0 / 0.
  if ((last_epoch_ - 1 - T_max_) % (2 * T_max_) == 0)
    return lr + (base_lr(group) - eta_min_) * (1 - cosine(1 / total));
  return cosine(epoch / total) / cosine((epoch - 1) / total) * (lr - eta_min_) + eta_min_;
}
std::vector<SchedulerNumber> CosineAnnealingLR::numbers() {
  return with(LRScheduler::numbers(),
              {{.name = "T_max", .whole = &T_max_}, {.name = "eta_min", .real = &eta_min_}});
}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t T_0,
                                                         int64_t T_mult, double eta_min)
    : LRScheduler("CosineAnnealingWarmRestarts", optimizer),
      T_0_(T_0),
      T_mult_(T_mult),
      eta_min_(eta_min),
      T_i_(T_0) {
  require(T_0 > 0, "T_0", static_cast<double>(T_0), "at least 1");
  require(T_mult > 0, "T_mult", static_cast<double>(T_mult), "at least 1");
  require(eta_min >= 0 && std::isfinite(eta_min), "eta_min", eta_min, "finite and at least 0");
  begin_at_present_rates();
}
void CosineAnnealingWarmRestarts::enter_epoch() {
  if (last_epoch_ == 0) {
    T_cur_ = 0, T_i_ = T_0_;
  } else if (++T_cur_ >= T_i_) {
    T_cur_ = 0, T_i_ *= T_mult_;
  }
}
double CosineAnnealingWarmRestarts::next_lr(size_t group, double) {
  const double part = static_cast<double>(T_cur_) / static_cast<double>(T_i_);
  return eta_min_ + (base_lr(group) - eta_min_) * cosine(part);
}
std::vector<SchedulerNumber> CosineAnnealingWarmRestarts::numbers() {
  return with(LRScheduler::numbers(), {{.name = "T_0", .whole = &T_0_},
                                       {.name = "T_mult", .whole = &T_mult_},
                                       {.name = "eta_min", .real = &eta_min_},
                                       {.name = "T_i", .whole = &T_i_},
                                       {.name = "T_cur", .whole = &T_cur_}});
}

}  // namespace tenon::optim
