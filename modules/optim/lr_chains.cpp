// Schedulers that are made of others, and the one that looks at a metric.
#include <algorithm>
#include <cmath>
#include <limits>

#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/modules/optim/lr_scheduler.h>

namespace tenon::optim {

namespace {

using Schedulers = std::vector<std::shared_ptr<LRScheduler>>;

Optimizer& optimizer_of(const char* name, const Schedulers& schedulers) {
  if (schedulers.empty()) throw ValueError(fmt::format("{}: got no scheduler", name));
  for (size_t i = 0; i < schedulers.size(); ++i) {
    if (!schedulers[i]) throw ValueError(fmt::format("{}: scheduler {} is null", name, i));
    if (&schedulers[i]->optimizer() != &schedulers[0]->optimizer())
      throw ValueError(
          fmt::format("{}: scheduler {} has another optimizer than the first", name, i));
  }
  return schedulers[0]->optimizer();
}

void add_numbers(std::vector<SchedulerNumber>& to, size_t i, std::vector<SchedulerNumber> from) {
  for (auto& n : from) {
    n.name = fmt::format("schedulers.{}.{}", i, n.name);
    to.push_back(std::move(n));
  }
}

using Texts = std::vector<std::pair<std::string, std::string>>;

void add_texts(Texts& to, size_t i, const Texts& from) {
  for (auto& [key, text] : from) to.emplace_back(fmt::format("schedulers.{}.{}", i, key), text);
}

}  // namespace

SequentialLR::SequentialLR(Optimizer& optimizer, Schedulers schedulers,
                           std::vector<int64_t> milestones)
    : LRScheduler("SequentialLR", optimizer),
      schedulers_(std::move(schedulers)),
      milestones_(std::move(milestones)) {
  if (&optimizer_of(name(), schedulers_) != &optimizer)
    refuse("the schedulers have another optimizer");
  if (milestones_.size() + 1 != schedulers_.size())
    refuse(fmt::format("{} schedulers need {} milestones, found {}", schedulers_.size(),
                       schedulers_.size() - 1, milestones_.size()));
  for (size_t i = 0; i < milestones_.size(); ++i)
    if (milestones_[i] <= (i ? milestones_[i - 1] : 0))
      refuse(fmt::format("milestone {} is {}; they have to be above 0 and to rise", i,
                         milestones_[i]));
  begin(base_lrs_);
}

void SequentialLR::begin(const std::vector<double>& rates) {
  last_epoch_ = 0;
  schedulers_[0]->begin(rates);
}

void SequentialLR::step() {
  ++last_epoch_;
  const auto behind = std::upper_bound(milestones_.begin(), milestones_.end(), last_epoch_);
  const auto i = static_cast<size_t>(behind - milestones_.begin());
  if (i > 0 && milestones_[i - 1] == last_epoch_) {
    schedulers_[i]->take_over();
  } else {
    schedulers_[i]->step();
  }
}

double SequentialLR::next_lr(size_t, double lr) { return lr; }

std::vector<SchedulerNumber> SequentialLR::numbers() {
  auto result = LRScheduler::numbers();
  for (size_t i = 0; i < schedulers_.size(); ++i)
    add_numbers(result, i, numbers_of(*schedulers_[i]));
  return result;
}

Texts SequentialLR::texts() const {
  Texts result = LRScheduler::texts();
  for (size_t i = 0; i < schedulers_.size(); ++i) add_texts(result, i, texts_of(*schedulers_[i]));
  return result;
}

ChainedScheduler::ChainedScheduler(Schedulers schedulers)
    : LRScheduler("ChainedScheduler", optimizer_of("ChainedScheduler", schedulers)),
      schedulers_(std::move(schedulers)) {}

void ChainedScheduler::begin(const std::vector<double>& rates) {
  last_epoch_ = 0;
  schedulers_[0]->begin(rates);
  for (size_t i = 1; i < schedulers_.size(); ++i)
    schedulers_[i]->begin(schedulers_[i]->get_last_lr());
}

void ChainedScheduler::step() {
  ++last_epoch_;
  for (auto& s : schedulers_) s->step();
}

double ChainedScheduler::next_lr(size_t, double lr) { return lr; }

std::vector<SchedulerNumber> ChainedScheduler::numbers() {
  auto result = LRScheduler::numbers();
  for (size_t i = 0; i < schedulers_.size(); ++i)
    add_numbers(result, i, numbers_of(*schedulers_[i]));
  return result;
}

Texts ChainedScheduler::texts() const {
  Texts result = LRScheduler::texts();
  for (size_t i = 0; i < schedulers_.size(); ++i) add_texts(result, i, texts_of(*schedulers_[i]));
  return result;
}

// ---- by a metric

namespace {

double worst(const std::string& mode) {
  const double infinity = std::numeric_limits<double>::infinity();
  return mode == "max" ? -infinity : infinity;
}

}  // namespace

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, const PlateauOptions& o)
    : SavedSchedule("ReduceLROnPlateau", optimizer), options_(o), best_(worst(o.mode)) {
  if (o.mode != "min" && o.mode != "max")
    refuse(fmt::format("mode is \"{}\"; it has to be \"min\" or \"max\"", o.mode));
  if (o.threshold_mode != "rel" && o.threshold_mode != "abs")
    refuse(
        fmt::format("threshold_mode is \"{}\"; it has to be \"rel\" or \"abs\"", o.threshold_mode));
  require(o.factor >= 0 && o.factor < 1, "factor", o.factor, "at least 0 and below 1");
  require(o.patience >= 0, "patience", static_cast<double>(o.patience), "at least 0");
  require(o.cooldown >= 0, "cooldown", static_cast<double>(o.cooldown), "at least 0");
  require(o.min_lr >= 0, "min_lr", o.min_lr, "at least 0");
}

bool ReduceLROnPlateau::is_better(double metric) const {
  const double sign = options_.mode == "max" ? 1 : -1;
  const double bound = options_.threshold_mode == "rel" ? best_ * (1 + sign * options_.threshold)
                                                        : best_ + sign * options_.threshold;
  return sign > 0 ? metric > bound : metric < bound;
}

void ReduceLROnPlateau::step(double metric) {
  ++last_epoch_;
  if (is_better(metric)) {
    best_ = metric;
    num_bad_epochs_ = 0;
  } else {
    ++num_bad_epochs_;
  }
  if (cooldown_counter_ > 0) {
    --cooldown_counter_;
    num_bad_epochs_ = 0;
  }
  if (num_bad_epochs_ <= options_.patience) return;
  for (size_t g = 0; g < optimizer().num_groups(); ++g) {
    const double before = optimizer().lr(g);
    const double lr = std::max(before * options_.factor, options_.min_lr);
    if (before - lr > options_.eps) optimizer().set_lr(lr, g);
  }
  cooldown_counter_ = options_.cooldown;
  num_bad_epochs_ = 0;
}

std::vector<SchedulerNumber> ReduceLROnPlateau::numbers() {
  auto& o = options_;
  return {{.name = "last_epoch", .whole = &last_epoch_},
          {.name = "num_bad_epochs", .whole = &num_bad_epochs_},
          {.name = "cooldown_counter", .whole = &cooldown_counter_},
          {.name = "best", .real = &best_, .absent = worst(o.mode)},
          {.name = "factor", .real = &o.factor},
          {.name = "patience", .whole = &o.patience},
          {.name = "threshold", .real = &o.threshold},
          {.name = "cooldown", .whole = &o.cooldown},
          {.name = "min_lr", .real = &o.min_lr},
          {.name = "eps", .real = &o.eps}};
}

std::vector<std::pair<std::string, std::string>> ReduceLROnPlateau::texts() const {
  return {{"type", name()}, {"mode", options_.mode}, {"threshold_mode", options_.threshold_mode}};
}

}  // namespace tenon::optim
