#include <cmath>
#include <numbers>

#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/modules/optim/lr_cycles.h>

namespace tenon::optim {

CycledMomentum::CycledMomentum(const char* scheduler, Optimizer& optimizer, double base, double max)
    : base(base), max(max), optimizer_(&optimizer) {
  for (const char* option : {"momentum", "betas.0"})
    if (optimizer.number_option(option)) option_ = option;
  if (!option_)
    throw ValueError(fmt::format(
        "{}: the optimizer has neither a momentum nor betas; set cycle_momentum to false",
        scheduler));
  for (double value : {base, max})
    if (!(value >= 0 && value < 1))
      throw ValueError(fmt::format("{}: a momentum is {}; it has to be at least 0 and below 1",
                                   scheduler, value));
}

void CycledMomentum::set(size_t group, double value) {
  if (option_) *optimizer_->number_option(option_, group) = value;
}

namespace {

void add_momenta(std::vector<SchedulerNumber>& to, CycledMomentum& momentum) {
  if (!momentum.used()) return;
  to.push_back({.name = "base_momentum", .real = &momentum.base});
  to.push_back({.name = "max_momentum", .real = &momentum.max});
}

}  // namespace

// ---- one cycle

OneCycleLR::OneCycleLR(Optimizer& optimizer, double max_lr, const OneCycleOptions& options)
    : OneCycleLR(optimizer, std::vector<double>(optimizer.num_groups(), max_lr), options) {}

OneCycleLR::OneCycleLR(Optimizer& optimizer, std::vector<double> max_lrs, const OneCycleOptions& o)
    : LRScheduler("OneCycleLR", optimizer),
      total_steps_(o.total_steps > 0 ? o.total_steps : o.epochs * o.steps_per_epoch),
      cosine_(o.anneal_strategy == "cos"),
      max_lrs_(std::move(max_lrs)),
      div_factor_(o.div_factor),
      final_div_factor_(o.final_div_factor) {
  require(total_steps_ > 0, "total_steps", static_cast<double>(total_steps_),
          "at least 1, or epochs and steps_per_epoch both");
  require(o.pct_start >= 0 && o.pct_start <= 1, "pct_start", o.pct_start,
          "at least 0 and at most 1");
  require(o.div_factor > 0, "div_factor", o.div_factor, "above 0");
  require(o.final_div_factor > 0, "final_div_factor", o.final_div_factor, "above 0");
  if (!cosine_ && o.anneal_strategy != "linear")
    refuse(fmt::format("anneal_strategy is \"{}\"; it has to be \"cos\" or \"linear\"",
                       o.anneal_strategy));
  if (max_lrs_.size() != optimizer.num_groups())
    refuse(fmt::format("{} rates for {} groups of parameters; each needs one", max_lrs_.size(),
                       optimizer.num_groups()));
  if (o.cycle_momentum)
    momentum_ = CycledMomentum(name(), optimizer, o.base_momentum, o.max_momentum);
  const double total = static_cast<double>(total_steps_), up = o.pct_start * total;
  if (o.three_phase) {
    phases_ = {{up - 1, 0, 1, false, true},
               {2 * up - 2, 1, 0, true, false},
               {total - 1, 0, 2, false, false}};
  } else {
    phases_ = {{up - 1, 0, 1, false, true}, {total - 1, 1, 2, true, false}};
  }
  for (size_t g = 0; g < max_lrs_.size(); ++g) {
    base_lrs_[g] = max_lrs_[g] / div_factor_;
    optimizer.set_initial_lr(base_lrs_[g], g);
  }
  begin_at_present_rates();
}

void OneCycleLR::enter_epoch() {
  if (last_epoch_ <= total_steps_) return;
  last_epoch_ = total_steps_;
  refuse(fmt::format("step {} was asked for, but total_steps is {}; make a scheduler of more steps",
                     total_steps_ + 1, total_steps_));
}

double OneCycleLR::anneal(double start, double end, double part) const {
  return cosine_ ? end + (start - end) / 2 * (std::cos(std::numbers::pi * part) + 1)
                 : (end - start) * part + start;
}

double OneCycleLR::next_lr(size_t group, double) {
  const double step = static_cast<double>(last_epoch_), first = base_lrs_[group];
  const double rates[] = {first, max_lrs_[group], first / final_div_factor_};
  const double momenta[] = {momentum_.max, momentum_.base};
  size_t i = 0;
  double start = 0;
  for (; i + 1 < phases_.size() && step > phases_[i].end; ++i) start = phases_[i].end;
  const Phase& phase = phases_[i];
  const double part = phase.end == start ? 1 : (step - start) / (phase.end - start);
  momentum_.set(group, anneal(momenta[phase.low_before], momenta[phase.low_behind], part));
  return anneal(rates[phase.from], rates[phase.to], part);
}

std::vector<SchedulerNumber> OneCycleLR::numbers() {
  auto result = LRScheduler::numbers();
  result.push_back({.name = "total_steps", .whole = &total_steps_});
  result.push_back({.name = "final_div_factor", .real = &final_div_factor_});
  for (size_t g = 0; g < max_lrs_.size(); ++g)
    result.push_back({.name = fmt::format("max_lrs.{}", g), .real = &max_lrs_[g]});
  for (size_t i = 0; i < phases_.size(); ++i)
    result.push_back({.name = fmt::format("phases.{}", i), .real = &phases_[i].end});
  add_momenta(result, momentum_);
  return result;
}

std::vector<std::pair<std::string, std::string>> OneCycleLR::texts() const {
  auto result = LRScheduler::texts();
  result.emplace_back("anneal_strategy", cosine_ ? "cos" : "linear");
  return result;
}

// ---- many cycles

CyclicLR::CyclicLR(Optimizer& optimizer, double base_lr, double max_lr, const CyclicOptions& o)
    : LRScheduler("CyclicLR", optimizer), base_(base_lr), max_(max_lr), gamma_(o.gamma) {
  require(base_lr >= 0 && std::isfinite(base_lr), "base_lr", base_lr, "finite and at least 0");
  require(max_lr >= base_lr && std::isfinite(max_lr), "max_lr", max_lr,
          "finite and at least base_lr");
  require(o.step_size_up > 0, "step_size_up", static_cast<double>(o.step_size_up), "at least 1");
  require(o.step_size_down >= 0, "step_size_down", static_cast<double>(o.step_size_down),
          "at least 0");
  const double up = static_cast<double>(o.step_size_up),
               down = o.step_size_down ? static_cast<double>(o.step_size_down) : up;
  total_size_ = up + down;
  step_ratio_ = up / total_size_;
  if (o.scale_fn) {
    if (o.scale_mode != "cycle" && o.scale_mode != "iterations")
      refuse(fmt::format("scale_mode is \"{}\"; it has to be \"cycle\" or \"iterations\"",
                         o.scale_mode));
    scale_ = o.scale_fn;
    by_cycle_ = o.scale_mode == "cycle";
  } else if (o.mode == "triangular") {
    scale_ = [](double) { return 1.0; };
  } else if (o.mode == "triangular2") {
    scale_ = [](double cycle) { return std::pow(2.0, 1 - cycle); };
  } else if (o.mode == "exp_range") {
    scale_ = [this](double step) { return std::pow(gamma_, step); };
    by_cycle_ = false;
  } else {
    refuse(fmt::format(
        "mode is \"{}\"; it has to be \"triangular\", \"triangular2\" or \"exp_range\"", o.mode));
  }
  if (o.cycle_momentum)
    momentum_ = CycledMomentum(name(), optimizer, o.base_momentum, o.max_momentum);
  begin_at_present_rates();
}

double CyclicLR::next_lr(size_t group, double) {
  const double step = static_cast<double>(last_epoch_), cycle = std::floor(1 + step / total_size_),
               x = 1 + step / total_size_ - cycle;
  const double height = x <= step_ratio_ ? x / step_ratio_ : (x - 1) / (step_ratio_ - 1);
  const double scaled = height * scale_(by_cycle_ ? cycle : step);
  momentum_.set(group, momentum_.max - (momentum_.max - momentum_.base) * scaled);
  return base_ + (max_ - base_) * scaled;
}

std::vector<SchedulerNumber> CyclicLR::numbers() {
  auto result = LRScheduler::numbers();
  result.push_back({.name = "base_lr", .real = &base_});
  result.push_back({.name = "max_lr", .real = &max_});
  result.push_back({.name = "gamma", .real = &gamma_});
  result.push_back({.name = "total_size", .real = &total_size_});
  result.push_back({.name = "step_ratio", .real = &step_ratio_});
  add_momenta(result, momentum_);
  return result;
}

}  // namespace tenon::optim
