// Schedulers that cycle the rate, and the momentum against it: OneCycleLR and CyclicLR. Their
// constructors throw a ValueError for an option outside its range, and if the momentum is to cycle,
// for an optimizer that has neither a momentum nor betas.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <tenon/modules/optim/lr_scheduler.h>

namespace tenon::optim {

// The momentum of SGD or the first beta of Adam, which cycles against the rate.
class TENON_API CycledMomentum {
 public:
  // Makes one that does not cycle.
  CycledMomentum() = default;
  // Makes one that cycles between two values, at least 0 and below 1. Throws a ValueError for other
  // values, and if the optimizer has neither a momentum nor betas; errors begin with `scheduler`.
  CycledMomentum(const char* scheduler, Optimizer& optimizer, double base, double max);
  // Returns whether it cycles.
  bool used() const { return option_ != nullptr; }
  // Sets the momentum of a group; does nothing if it does not cycle.
  void set(size_t group, double value);
  double base = 0, max = 0;  // the least and the largest value

 private:
  Optimizer* optimizer_ = nullptr;
  const char* option_ = nullptr;
};

struct OneCycleOptions {
  // The number of steps, at least 1. If it is 0, it is the product of the next two, which are then
  // at least 1.
  int64_t total_steps = 0;
  int64_t epochs = 0;                   // the number of epochs
  int64_t steps_per_epoch = 0;          // the number of batches in each
  double pct_start = 0.3;               // the part of the steps in which the rate rises, in [0, 1]
  std::string anneal_strategy = "cos";  // the rate follows a cosine, "cos", or a line, "linear"
  bool cycle_momentum = true;           // whether the momentum, or the first beta, cycles as well
  double base_momentum = 0.85;          // the momentum at the highest rate, at least 0 and below 1
  double max_momentum = 0.95;           // the momentum at the other rates, at least 0 and below 1
  double div_factor = 25;               // the first rate is max_lr / div_factor; above 0
  double final_div_factor = 1e4;        // the last rate is the first / final_div_factor; above 0
  bool three_phase = false;  // whether it falls to the first rate before it falls to the last
};

// The rate makes one cycle of total_steps steps, from a low rate to max_lr and down to a lower one
// (Smith and Topin, arXiv:1708.07120). Call step() after every batch; it throws a ValueError when
// it is called more than total_steps times.
class TENON_API OneCycleLR final : public LRScheduler {
 public:
  // Takes one highest rate for all groups.
  OneCycleLR(Optimizer& optimizer, double max_lr, const OneCycleOptions& options);
  // Takes a highest rate for each group. Throws a ValueError for another number of rates.
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
  int64_t step_size_up = 2000;  // the steps from the base rate to the highest, at least 1
  int64_t step_size_down = 0;   // the steps back; 0 means as many as up
  // What the height of the cycles is multiplied by: "triangular" leaves it, "triangular2" halves it
  // each cycle, and "exp_range" multiplies it by gamma^step.
  std::string mode = "triangular";
  double gamma = 1;  // the factor of "exp_range"
  // A function of the cycle's number, from 1, or of the step, that returns the factor of the height
  // and replaces `mode`.
  std::function<double(double)> scale_fn = {};
  std::string scale_mode = "cycle";  // the argument of scale_fn: "cycle" or "iterations", the step
  bool cycle_momentum = true;        // whether the momentum, or the first beta, cycles as well
  double base_momentum = 0.8;        // the momentum at the highest rate, at least 0 and below 1
  double max_momentum = 0.9;         // the momentum at the base rate, at least 0 and below 1
};

// The rate goes up and down between two bounds (Smith, arXiv:1506.01186). Call step() after every
// batch.
class TENON_API CyclicLR final : public LRScheduler {
 public:
  // Cycles between base_lr, finite and at least 0, and max_lr, finite and at least base_lr.
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
