// Schedulers that cycle, the momentum against the rate: OneCycleLR and CyclicLR.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <tenon/modules/optim/lr_scheduler.h>

namespace tenon::optim {

// The momentum of SGD or the first beta of Adam, which cycles against the rate.
class TENON_API CycledMomentum {
 public:
  CycledMomentum() = default;
  // Throws a ValueError if the optimizer has neither.
  CycledMomentum(const char* scheduler, Optimizer& optimizer, double base, double max);
  // Whether it was made for an optimizer.
  bool used() const { return option_ != nullptr; }
  // Sets it for a group; does nothing if it does not cycle.
  void set(size_t group, double value);
  double base = 0, max = 0;

 private:
  Optimizer* optimizer_ = nullptr;
  const char* option_ = nullptr;
};

struct OneCycleOptions {
  // Either this, or both of the next two, whose product it then is.
  int64_t total_steps = 0;
  int64_t epochs = 0;
  int64_t steps_per_epoch = 0;
  double pct_start = 0.3;               // the part of the steps in which the rate rises
  std::string anneal_strategy = "cos";  // or "linear"
  bool cycle_momentum = true;           // needs an optimizer with momentum or betas
  double base_momentum = 0.85;
  double max_momentum = 0.95;
  double div_factor = 25;         // the first rate is max_lr / div_factor
  double final_div_factor = 1e4;  // the last rate is the first / final_div_factor
  bool three_phase = false;       // falls to the first rate, and then to the last
};

// One cycle of total_steps steps, from a low rate to max_lr and down to a lower one (Smith and
// Topin, arXiv:1708.07120). Call step() after every batch. Further steps throw a ValueError.
class TENON_API OneCycleLR final : public LRScheduler {
 public:
  OneCycleLR(Optimizer& optimizer, double max_lr, const OneCycleOptions& options);
  // With a rate for each group.
  OneCycleLR(Optimizer& optimizer, std::vector<double> max_lrs, const OneCycleOptions& options);

 protected:
  double first_lr(size_t group, double lr) override { return next_lr(group, lr); }
  double next_lr(size_t group, double lr) override;
  void enter_epoch() override;
  std::vector<SchedulerNumber> numbers() override;
  std::vector<std::pair<std::string, std::string>> texts() const override;

 private:
  struct Phase {
    double end;                   // the step with which it ends
    size_t from, to;              // of the three rates: 0 the first, 1 the highest, 2 the last
    bool low_before, low_behind;  // whether the momentum is at its base then
  };
  double anneal(double start, double end, double part) const;

  int64_t total_steps_;
  bool cosine_;
  std::vector<double> max_lrs_;
  double div_factor_, final_div_factor_;
  std::vector<Phase> phases_;
  CycledMomentum momentum_;
};

struct CyclicOptions {
  int64_t step_size_up = 2000;      // steps from the base rate to the highest
  int64_t step_size_down = 0;       // and back; 0: as many
  std::string mode = "triangular";  // or "triangular2", which halves each cycle, or "exp_range"
  double gamma = 1;                 // exp_range multiplies by gamma^step
  // In place of a mode: of the number of the cycle, from 1, or of the step.
  std::function<double(double)> scale_fn = {};
  std::string scale_mode = "cycle";  // or "iterations", for scale_fn
  bool cycle_momentum = true;        // needs an optimizer with momentum or betas
  double base_momentum = 0.8;
  double max_momentum = 0.9;
};

// The rate goes up and down between two bounds (Smith, arXiv:1506.01186). Call step() after every
// batch.
class TENON_API CyclicLR final : public LRScheduler {
 public:
  CyclicLR(Optimizer& optimizer, double base_lr, double max_lr, const CyclicOptions& options = {});

 protected:
  double first_lr(size_t group, double lr) override { return next_lr(group, lr); }
  double next_lr(size_t group, double lr) override;
  std::vector<SchedulerNumber> numbers() override;

 private:
  double base_, max_, gamma_, total_size_, step_ratio_;
  std::function<double(double)> scale_;
  bool by_cycle_ = true;
  CycledMomentum momentum_;
};

}  // namespace tenon::optim
