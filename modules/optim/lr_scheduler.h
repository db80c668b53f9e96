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
// ValueError for an argument outside its range. Cycles are in lr_cycles.h.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenon/modules/optim/optimizer.h>

namespace tenon::optim {

// Everything that a scheduler needs to continue: "last_epoch", "gamma", "schedulers.0.last_epoch".
struct SchedulerState {
  std::vector<std::pair<std::string, double>> numbers;
  // What kind of scheduler it is, which has to be the one that loads it: "type",
  // "schedulers.0.type", "mode". A state without texts is compared by its numbers alone.
  std::vector<std::pair<std::string, std::string>> texts = {};
};

// A number of a scheduler, under the name by which it is saved.
struct SchedulerNumber {
  std::string name;
  double* real = nullptr;  // one of these is set
  int64_t* whole = nullptr;
  // Where a state may lack it: what it is then.
  std::optional<double> absent = std::nullopt;
};

// What can be saved and loaded.
class TENON_API SavedSchedule {
 public:
  virtual ~SavedSchedule();
  SavedSchedule(const SavedSchedule&) = delete;
  SavedSchedule& operator=(const SavedSchedule&) = delete;

  Optimizer& optimizer() const { return *optimizer_; }
  // Returns the rates that are in force, one a group.
  std::vector<double> get_last_lr() const;
  SchedulerState state_dict();
  // Replaces the state. Throws a StateDictError, and changes nothing, if it comes from another kind
  // of scheduler.
  void load_state_dict(const SchedulerState& state) { prepare_load(state)(); }
  // Does all of load_state_dict that can fail, and changes nothing. The function that it returns
  // does the rest.
  [[nodiscard]] std::function<void()> prepare_load(const SchedulerState& state);
  // Returns the name of its type, such as "StepLR".
  const char* name() const { return name_; }

 protected:
  SavedSchedule(const char* name, Optimizer& optimizer) : name_(name), optimizer_(&optimizer) {}
  // The numbers that are saved.
  virtual std::vector<SchedulerNumber> numbers() = 0;
  // The texts that are saved, which no load changes.
  virtual std::vector<std::pair<std::string, std::string>> texts() const {
    return {{"type", name_}};
  }
  static std::vector<SchedulerNumber> numbers_of(SavedSchedule& other) { return other.numbers(); }
  static std::vector<std::pair<std::string, std::string>> texts_of(const SavedSchedule& other) {
    return other.texts();
  }
  void require(bool ok, const char* what, double value, const char* wanted) const;
  [[noreturn]] void refuse(const std::string& why) const;  // ValueError

 private:
  const char* name_;
  Optimizer* optimizer_;
};

// The base of all schedulers but ReduceLROnPlateau.
class TENON_API LRScheduler : public SavedSchedule {
 public:
  // Sets the rates of the next epoch.
  virtual void step();
  // Returns how many steps were made.
  int64_t last_epoch() const { return last_epoch_; }

 protected:
  friend class SequentialLR;
  friend class ChainedScheduler;
  LRScheduler(const char* name, Optimizer& optimizer);

  // Returns the rate of a group in epoch 0, where it would be `lr` without this scheduler.
  virtual double first_lr(size_t, double lr) { return lr; }
  // Returns the rate of a group in epoch last_epoch(), which was `lr` in the one before.
  virtual double next_lr(size_t group, double lr) = 0;
  // Called before the rates of an epoch are asked for; with epoch 0 everything starts again.
  virtual void enter_epoch() {}
  // Begins with epoch 0 at these rates; constructors do so at the present ones.
  virtual void begin(const std::vector<double>& rates);
  // Begins with epoch 0 where SequentialLR comes to it: at the base rates, unless it goes on from
  // the present ones.
  virtual void take_over() { begin(base_lrs_); }
  void begin_at_present_rates() { begin(get_last_lr()); }
  double base_lr(size_t group) const { return base_lrs_[group]; }
  std::vector<SchedulerNumber> numbers() override;

  int64_t last_epoch_ = 0;
  std::vector<double> base_lrs_;  // those before any scheduler
};

using LRLambda = std::function<double(int64_t epoch)>;

// The base rate times lr_lambda(epoch), of which there may be one for each group.
class TENON_API LambdaLR final : public LRScheduler {
 public:
  LambdaLR(Optimizer& optimizer, LRLambda lr_lambda);
  LambdaLR(Optimizer& optimizer, std::vector<LRLambda> lr_lambdas);

 protected:
  double first_lr(size_t group, double lr) override { return next_lr(group, lr); }
  double next_lr(size_t group, double lr) override;

 private:
  std::vector<LRLambda> lambdas_;
};

// The rate is multiplied by lr_lambda(epoch) in each epoch but the first; after another scheduler
// of a SequentialLR in the first, too.
class TENON_API MultiplicativeLR final : public LRScheduler {
 public:
  MultiplicativeLR(Optimizer& optimizer, LRLambda lr_lambda);
  MultiplicativeLR(Optimizer& optimizer, std::vector<LRLambda> lr_lambdas);

 protected:
  double next_lr(size_t group, double lr) override;
  void take_over() override;

 private:
  std::vector<LRLambda> lambdas_;
};

// The rate is multiplied by gamma every step_size epochs.
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

// The rate is multiplied by gamma in each of these epochs, twice in one that is listed twice.
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

// The rate is multiplied by `factor` until epoch total_iters. With total_iters = 0, as in PyTorch,
// it is so for ever, unless a SequentialLR comes to it later: then the rate is the base rate.
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

// The rate is multiplied by a factor that goes from start_factor to end_factor in total_iters
// epochs, evenly: a warm-up, or a decay.
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

// The rate is multiplied by gamma in every epoch.
class TENON_API ExponentialLR final : public LRScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma);

 protected:
  double next_lr(size_t, double lr) override { return lr * gamma_; }
  std::vector<SchedulerNumber> numbers() override;

 private:
  double gamma_;
};

// The rate goes to 0 in total_iters epochs, as (1 - epoch / total_iters)^power.
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

// The rate goes down to eta_min in T_max epochs along a cosine (Loshchilov and Hutter,
// arXiv:1608.03983), and up again in the T_max after them.
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

// The same, but it jumps back to the base rate after T_0 epochs, then after T_0 * T_mult, and so
// on.
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

// Some schedulers, one after the other: scheduler i + 1 takes over at epoch milestones[i], which is
// its epoch 0. As in PyTorch, it begins at the base rates; SWALR and MultiplicativeLR go on from
// those that it finds. All of them have this optimizer.
//   optim::SequentialLR warm(optimizer, {std::make_shared<optim::LinearLR>(optimizer, 0.1, 1, 5),
//       std::make_shared<optim::CosineAnnealingLR>(optimizer, 95)}, {5});
class TENON_API SequentialLR final : public LRScheduler {
 public:
  SequentialLR(Optimizer& optimizer, std::vector<std::shared_ptr<LRScheduler>> schedulers,
               std::vector<int64_t> milestones);
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

// Some schedulers of one optimizer that step together: their factors are multiplied.
class TENON_API ChainedScheduler final : public LRScheduler {
 public:
  explicit ChainedScheduler(std::vector<std::shared_ptr<LRScheduler>> schedulers);
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
  std::string mode = "min";            // or "max": what a better metric is
  double factor = 0.1;                 // by which the rate is multiplied, below 1
  int64_t patience = 10;               // as many epochs without a better metric are accepted
  double threshold = 1e-4;             // by which a metric has to be better
  std::string threshold_mode = "rel";  // in proportion to the best; or "abs"
  int64_t cooldown = 0;                // so many epochs after a reduction are not counted
  double min_lr = 0;
  double eps = 1e-8;  // smaller changes of the rate are not made
};

// Reduces the rate when a metric has stopped getting better.
class TENON_API ReduceLROnPlateau final : public SavedSchedule {
 public:
  explicit ReduceLROnPlateau(Optimizer& optimizer, const PlateauOptions& options = {});
  // To be called after each epoch with its metric.
  void step(double metric);
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
