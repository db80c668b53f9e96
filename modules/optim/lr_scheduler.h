// Schedulers of learning rates, as those of torch.optim.lr_scheduler.
//
//   optim::SGD optimizer(net.parameters(), {.lr = 0.1});
//   optim::StepLR scheduler(optimizer, 30, 0.5);
//   for (int epoch = 0; epoch < 90; ++epoch) {
//     …                  // optimizer.step() for each batch
//     scheduler.step();  // the rate halves after 30 and after 60 epochs
//   }
//
// A scheduler refers to its optimizer, which has to outlive it, and sets the rates of all its
// groups: when it is made, and at each step. Most multiply the present rate, so several act
// together on one optimizer. Rates below 0, which rounding may give, become 0. To go on after a
// restart, make optimizer and scheduler again and load the states of both. Constructors throw a
// ValueError for an argument outside its range, which the comments of the classes say; gamma, power
// and eta_min are also finite. lr_cycles.h has the schedulers that cycle.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenon/modules/optim/optimizer.h>

namespace tenon::optim {

// Everything that a scheduler needs to continue.
struct SchedulerState {
  // The numbers by name, such as "last_epoch", "gamma" and "schedulers.0.last_epoch".
  std::vector<std::pair<std::string, double>> numbers;
  // The kind of the scheduler, which has to be that of the one that loads it: "type",
  // "schedulers.0.type", "mode". A state without texts is compared by its numbers alone.
  std::vector<std::pair<std::string, std::string>> texts = {};
};

// A number of a scheduler, under the name by which it is saved.
struct SchedulerNumber {
  std::string name;          // "last_epoch"
  double* real = nullptr;    // where a real number is; one of these two pointers is set
  int64_t* whole = nullptr;  // where a whole number is
  // The value of a number that a state lacks; nullopt if it must not lack it.
  std::optional<double> absent = std::nullopt;
};

// The base of everything that schedules, which can be saved and loaded.
class TENON_API SavedSchedule {
 public:
  virtual ~SavedSchedule();
  SavedSchedule(const SavedSchedule&) = delete;
  SavedSchedule& operator=(const SavedSchedule&) = delete;

  // Returns the optimizer whose rates it sets.
  Optimizer& optimizer() const { return *optimizer_; }
  // Returns the rates that are in force, one for each group.
  std::vector<double> get_last_lr() const;
  // Returns the state.
  SchedulerState state_dict();
  // Replaces the state. Throws a StateDictError, and changes nothing, if it comes from another kind
  // of scheduler, lacks a number or has another one.
  void load_state_dict(const SchedulerState& state) { prepare_load(state)(); }
  // Does all of load_state_dict that can fail, and changes nothing. The function that it returns
  // does the rest.
  [[nodiscard]] std::function<void()> prepare_load(const SchedulerState& state);
  // Returns the name of its type, such as "StepLR".
  const char* name() const { return name_; }

 protected:
  SavedSchedule(const char* name, Optimizer& optimizer) : name_(name), optimizer_(&optimizer) {}
  // Returns the numbers that are saved.
  virtual std::vector<SchedulerNumber> numbers() = 0;
  // Returns the texts that are saved, which no load changes.
  virtual std::vector<std::pair<std::string, std::string>> texts() const {
    return {{"type", name_}};
  }
  // Return the numbers and texts of another one.
  static std::vector<SchedulerNumber> numbers_of(SavedSchedule& other) { return other.numbers(); }
  static std::vector<std::pair<std::string, std::string>> texts_of(const SavedSchedule& other) {
    return other.texts();
  }
  // Throws the ValueError "<name>: <what> is <value>; it has to be <wanted>" unless `ok`.
  void require(bool ok, const char* what, double value, const char* wanted) const;
  // Throws the ValueError "<name>: <why>".
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  const char* name_;
  Optimizer* optimizer_;
};

// The base of all schedulers but ReduceLROnPlateau.
class TENON_API LRScheduler : public SavedSchedule {
 public:
  // Goes to the next epoch and sets its rates.
  virtual void step();
  // Returns the number of steps that were made.
  int64_t last_epoch() const { return last_epoch_; }

 protected:
  friend class SequentialLR;
  friend class ChainedScheduler;
  LRScheduler(const char* name, Optimizer& optimizer);

  // Returns the rate of a group in epoch 0, where it would be `lr` without this scheduler.
  virtual double first_lr(size_t, double lr) { return lr; }
  // Returns the rate of a group in epoch last_epoch(), which was `lr` in the one before.
  virtual double next_lr(size_t group, double lr) = 0;
  // Is called before the rates of an epoch are asked for; with epoch 0 everything starts again.
  virtual void enter_epoch() {}
  // Begins with epoch 0 at these rates; constructors do so at the present ones.
  virtual void begin(const std::vector<double>& rates);
  // Begins with epoch 0 where SequentialLR comes to it: at the base rates, unless it goes on from
  // the present ones.
  virtual void take_over() { begin(base_lrs_); }
  // Begins with epoch 0 at the rates that are in force.
  void begin_at_present_rates() { begin(get_last_lr()); }
  // Returns the rate that a group had before any scheduler.
  double base_lr(size_t group) const { return base_lrs_[group]; }
  std::vector<SchedulerNumber> numbers() override;

  int64_t last_epoch_ = 0;
  std::vector<double> base_lrs_;  // those before any scheduler
};

// A function of the epoch, which is 0 at first, that returns a factor.
using LRLambda = std::function<double(int64_t epoch)>;

// The rate is the base rate times lr_lambda(epoch). The constructors throw a ValueError for an
// empty function.
class TENON_API LambdaLR final : public LRScheduler {
 public:
  // Takes one function for all groups.
  LambdaLR(Optimizer& optimizer, LRLambda lr_lambda);
  // Takes a function for each group. Throws a ValueError for another number of functions.
  LambdaLR(Optimizer& optimizer, std::vector<LRLambda> lr_lambdas);

 protected:
  double first_lr(size_t group, double lr) override { return next_lr(group, lr); }
  double next_lr(size_t group, double lr) override;

 private:
  std::vector<LRLambda> lambdas_;
};

// The rate is multiplied by lr_lambda(epoch) in each epoch but the first, and if another scheduler
// of a SequentialLR came before, in the first, too. The constructors throw a ValueError for an
// empty function.
class TENON_API MultiplicativeLR final : public LRScheduler {
 public:
  // Takes one function for all groups.
  MultiplicativeLR(Optimizer& optimizer, LRLambda lr_lambda);
  // Takes a function for each group. Throws a ValueError for another number of functions.
  MultiplicativeLR(Optimizer& optimizer, std::vector<LRLambda> lr_lambdas);

 protected:
  double next_lr(size_t group, double lr) override;
  void take_over() override;

 private:
  std::vector<LRLambda> lambdas_;
};

// The rate is multiplied by gamma, at least 0, every step_size epochs, at least 1.
class TENON_API StepLR final : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1);

 protected:
  double next_lr(size_t group, double lr) override;
  std::vector<SchedulerNumber> numbers() override;

 private:
  int64_t step_size_;
  double gamma_;
};

// The rate is multiplied by gamma, at least 0, in each of these epochs, twice in one that is listed
// twice.
class TENON_API MultiStepLR final : public LRScheduler {
 public:
  MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma = 0.1);

 protected:
  double first_lr(size_t group, double lr) override { return next_lr(group, lr); }
  double next_lr(size_t group, double lr) override;
  std::vector<SchedulerNumber> numbers() override;

 private:
  std::vector<int64_t> milestones_;
  double gamma_;
};

// The rate is multiplied by `factor`, in (0, 1], until epoch total_iters, at least 0. With
// total_iters = 0, as in PyTorch, it stays so, unless a SequentialLR comes to this scheduler later:
// then the rate is the base rate.
class TENON_API ConstantLR final : public LRScheduler {
 public:
  explicit ConstantLR(Optimizer& optimizer, double factor = 1.0 / 3, int64_t total_iters = 5);

 protected:
  double first_lr(size_t, double lr) override { return lr * factor_; }
  void take_over() override;
  double next_lr(size_t group, double lr) override;
  std::vector<SchedulerNumber> numbers() override;

 private:
  double factor_;
  int64_t total_iters_;
};

// The rate is multiplied by a factor that goes evenly from start_factor, in (0, 1], to end_factor,
// in [0, 1], in total_iters epochs, at least 0: a warm-up, or a decay.
class TENON_API LinearLR final : public LRScheduler {
 public:
  explicit LinearLR(Optimizer& optimizer, double start_factor = 1.0 / 3, double end_factor = 1,
                    int64_t total_iters = 5);

 protected:
  double first_lr(size_t, double lr) override { return lr * start_factor_; }
  double next_lr(size_t group, double lr) override;
  std::vector<SchedulerNumber> numbers() override;

 private:
  double start_factor_, end_factor_;
  int64_t total_iters_;
};

// The rate is multiplied by gamma, at least 0, in every epoch.
class TENON_API ExponentialLR final : public LRScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma);

 protected:
  double next_lr(size_t, double lr) override { return lr * gamma_; }
  std::vector<SchedulerNumber> numbers() override;

 private:
  double gamma_;
};

// The rate goes to 0 in total_iters epochs, at least 1, as (1 - epoch / total_iters)^power, with a
// power of at least 0.
class TENON_API PolynomialLR final : public LRScheduler {
 public:
  explicit PolynomialLR(Optimizer& optimizer, int64_t total_iters = 5, double power = 1);

 protected:
  double next_lr(size_t group, double lr) override;
  std::vector<SchedulerNumber> numbers() override;

 private:
  int64_t total_iters_;
  double power_;
};

// The rate goes down to eta_min, at least 0, in T_max epochs, at least 1, along a cosine
// (Loshchilov and Hutter, arXiv:1608.03983), and up again in the T_max epochs after them.
class TENON_API CosineAnnealingLR final : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min = 0);

 protected:
  double next_lr(size_t group, double lr) override;
  std::vector<SchedulerNumber> numbers() override;

 private:
  int64_t T_max_;
  double eta_min_;
};

// The rate goes down as with CosineAnnealingLR, but jumps back to the base rate after T_0 epochs,
// then after T_0 * T_mult more, and so on. T_0 and T_mult are at least 1, eta_min at least 0.
class TENON_API CosineAnnealingWarmRestarts final : public LRScheduler {
 public:
  CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t T_0, int64_t T_mult = 1,
                              double eta_min = 0);

 protected:
  double first_lr(size_t group, double lr) override { return next_lr(group, lr); }
  double next_lr(size_t group, double lr) override;
  void enter_epoch() override;
  std::vector<SchedulerNumber> numbers() override;

 private:
  int64_t T_0_, T_mult_;
  double eta_min_;
  int64_t T_i_, T_cur_ = 0;  // the length of this round, and the epochs of it
};

// Schedulers act one after the other: scheduler i + 1 takes over at epoch milestones[i], which is
// its epoch 0. As in PyTorch, it begins at the base rates; SWALR and MultiplicativeLR go on from
// the present rates. The constructor throws a ValueError for a scheduler that is null or has
// another optimizer, and for milestones that are not one fewer than the schedulers, or not above 0
// and rising.
//   optim::SequentialLR warm(optimizer, {std::make_shared<optim::LinearLR>(optimizer, 0.1, 1, 5),
//       std::make_shared<optim::CosineAnnealingLR>(optimizer, 95)}, {5});
class TENON_API SequentialLR final : public LRScheduler {
 public:
  SequentialLR(Optimizer& optimizer, std::vector<std::shared_ptr<LRScheduler>> schedulers,
               std::vector<int64_t> milestones);
  // Makes a step of the scheduler whose turn it is.
  void step() override;

 protected:
  double next_lr(size_t group, double lr) override;
  void begin(const std::vector<double>& rates) override;
  std::vector<SchedulerNumber> numbers() override;
  std::vector<std::pair<std::string, std::string>> texts() const override;

 private:
  std::vector<std::shared_ptr<LRScheduler>> schedulers_;
  std::vector<int64_t> milestones_;
};

// Schedulers of one optimizer step together, so that their factors are multiplied. The constructor
// throws a ValueError without a scheduler, and for one that is null or has another optimizer.
class TENON_API ChainedScheduler final : public LRScheduler {
 public:
  explicit ChainedScheduler(std::vector<std::shared_ptr<LRScheduler>> schedulers);
  // Makes a step of each scheduler, in their order.
  void step() override;

 protected:
  double next_lr(size_t group, double lr) override;
  void begin(const std::vector<double>& rates) override;
  std::vector<SchedulerNumber> numbers() override;
  std::vector<std::pair<std::string, std::string>> texts() const override;

 private:
  std::vector<std::shared_ptr<LRScheduler>> schedulers_;
};

struct PlateauOptions {
  std::string mode = "min";  // whether a better metric is a smaller one, "min", or a larger, "max"
  double factor = 0.1;       // the factor of a reduction, at least 0 and below 1
  int64_t patience = 10;     // the epochs without a better metric that are accepted, at least 0
  double threshold = 1e-4;   // the difference from the best metric that a better one has to have
  std::string threshold_mode = "rel";  // "rel", in proportion to the best metric, or "abs"
  int64_t cooldown = 0;  // the epochs after a reduction that are not counted, at least 0
  double min_lr = 0;     // the least rate, at least 0
  double eps = 1e-8;     // smaller changes of the rate are not made
};

// Reduces the rate when a metric has stopped getting better.
class TENON_API ReduceLROnPlateau final : public SavedSchedule {
 public:
  explicit ReduceLROnPlateau(Optimizer& optimizer, const PlateauOptions& options = {});
  // Takes the metric of an epoch, and reduces the rates of all groups if it is due. Call it after
  // each epoch. A NaN is no better metric.
  void step(double metric);
  // Returns the number of steps that were made.
  int64_t last_epoch() const { return last_epoch_; }

 protected:
  std::vector<SchedulerNumber> numbers() override;
  std::vector<std::pair<std::string, std::string>> texts() const override;

 private:
  bool is_better(double metric) const;

  PlateauOptions options_;
  int64_t last_epoch_ = 0, num_bad_epochs_ = 0, cooldown_counter_ = 0;
  double best_;
};

}  // namespace tenon::optim
