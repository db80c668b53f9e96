// The base of all optimizers.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/core/tensor.h>
#include <tenon/modules/state_dict.h>

namespace tenon {
struct Storage;
}

namespace tenon::optim {

namespace detail {
class StateNumbers;
}

// A group of parameters with options of its own.
template <class Options>
struct ParamGroup {
  std::vector<Tensor> params;  // leaves of a floating dtype, at least one
  Options options = {};        // the optimizer's options, such as SGDOptions
};

// Everything that an optimizer needs to continue as if it had never stopped. Parameters are
// numbered in the order in which they were given.
struct OptimizerState {
  nn::StateDict tensors;  // "state.0.momentum_buffer"
  // The numbers by name, such as "state.0.step" and "param_groups.0.lr"; flags are 0 or 1.
  std::vector<std::pair<std::string, double>> numbers;
  // Whether prepare_load() may keep the memory of tensors that have no other owner, instead of
  // copying them; such tensors must not be used afterwards.
  bool give_memory = false;
};

// An optimizer has handles of its parameters, so they may be moved to another device or loaded from
// a checkpoint, and it still updates them. Of a parameter in f16 or bf16 it keeps a copy in f32,
// the master weights, which it updates, with all state in f32: small steps are not lost to
// rounding. If such a parameter is changed elsewhere, the master weights follow.
//
// Every optimizer but LBFGS has three constructors: for one group of parameters with options, for
// one with a learning rate, and for several groups. They throw a ValueError if a group has no
// parameter, if one is undefined, is given twice or is not a leaf, or for an option outside its
// range, and a DTypeError for a parameter that is not floating.
class TENON_API Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Updates each parameter that has a gradient, in place. Throws a ValueError, and changes nothing,
  // if an option is outside its range by now.
  virtual void step() = 0;
  // A function that computes the loss and its gradients, and returns the loss.
  using Closure = std::function<Tensor()>;
  // Calls the closure with gradients enabled, makes the step, and returns the loss.
  virtual Tensor step(const Closure& closure);
  // Drops the gradients of all parameters, or sets them to zero if set_to_none is false.
  void zero_grad(bool set_to_none = true);

  // Returns the number of groups of parameters.
  size_t num_groups() const { return groups_.size(); }
  // Returns the parameters of a group. This function and all others that take the number of a group
  // throw an IndexError if there is no such group.
  const std::vector<Tensor>& params(size_t group = 0) const { return groups_[checked(group)]; }
  // Returns the learning rate of a group.
  double lr(size_t group = 0);
  // Sets the learning rate of all groups. Throws a ValueError unless it is finite and at least 0.
  void set_lr(double lr);
  // Sets the learning rate of one group. Throws a ValueError as set_lr(lr) does.
  void set_lr(double lr, size_t group);
  // Returns the learning rate that a group had when this was first asked, as schedulers do when
  // they are made: the rate before any of them changed it.
  double initial_lr(size_t group = 0);
  // Replaces the initial learning rate of a group, for schedulers with rates of their own. Throws a
  // ValueError unless it is finite and at least 0.
  void set_initial_lr(double lr, size_t group);

  // Returns the state. Its tensors are handles: a later step changes them.
  virtual OptimizerState state_dict();
  // Replaces the state by a copy of another. Throws a StateDictError if it comes from another kind
  // of optimizer, does not fit the parameters, lacks tensors, or has an option outside its range;
  // nothing is changed then.
  void load_state_dict(const OptimizerState& state) { prepare_load(state)(); }
  // Does all of load_state_dict that can fail, and changes nothing. The function that it returns
  // does the rest, so that the states of several parts can be loaded together or not at all; the
  // optimizer has to be alive and unchanged until then.
  [[nodiscard]] virtual std::function<void()> prepare_load(const OptimizerState& state);
  // Returns the name of its type, such as "Adam".
  const char* name() const { return name_; }
  // Returns whether the state belongs to all parameters together, as that of LBFGS, so that their
  // order counts.
  virtual bool order_counts() const { return false; }

  // Returns the option of that name of a group, such as "momentum" or "betas.0", which a scheduler
  // may change; null if the optimizer has no such option that is a number.
  double* number_option(const std::string& name, size_t group = 0);

 protected:
  // A tensor of state that there is for each parameter.
  struct Slot {
    const char* name;    // "exp_avg"
    bool used;           // whether the options of that group use it
    bool steady;         // whether each parameter that has made steps has it, if it is used
    double initial = 0;  // the value of all elements at the start
  };
  // An option of a group, of which one of the three pointers is set.
  struct Option {
    const char* name;  // "lr"
    double* number = nullptr;
    bool* flag = nullptr;
    int64_t* whole = nullptr;
    // Returns the value as a number; a flag is 0 or 1.
    double value() const { return number ? *number : flag ? double(*flag) : double(*whole); }
    // Sets the option to a value.
    void assign(double value) const;
  };
  // A number that is remembered for each parameter, such as a product over its steps.
  struct Memory {
    const char* name;  // "mu_product"
    double initial;    // its value before the first step
  };
  // The state of a parameter: its number of steps, tensors of its shape, and numbers.
  struct State {
    int64_t step = 0;
    Tensor slots[3];
    std::array<double, 2> numbers = {};
    Tensor master;      // the f32 copy of a parameter of a half type, otherwise undefined
    uint64_t seen = 0;  // the number of the parameter's values that the master belongs to
  };
  // Parameters that one call of a fused operator can update: they have one device, one dtype, the
  // same number of steps and the same numbers. It has the master weights in place of parameters of
  // a half type.
  struct Bucket {
    Device device;
    DType dtype;
    int64_t step;                   // the number of earlier steps
    bool fresh;                     // whether the slots are new
    std::array<double, 2> numbers;  // the numbers of State, which a step may change
    std::vector<Tensor> params, grads, slots[3];
    std::vector<State*> states;
    std::vector<Tensor> halves;  // beside each master the parameter itself, otherwise undefined
  };

  // Keeps the groups after checking them; errors begin with `name`.
  Optimizer(const char* name, std::vector<std::vector<Tensor>> groups);

  // While it lives, a compiled function (core/graph/compile.h) is not recorded: it calls step()
  // again each time. `step` begins with one, so that its numbers are those of the moment.
  class Replayed {
   public:
    explicit Replayed(Optimizer& optimizer);
    ~Replayed();
    Replayed(const Replayed&) = delete;
    Replayed& operator=(const Replayed&) = delete;

   private:
    const bool noted_;
  };

  // Calls `step` with the parameters of a group that have a gradient, in buckets; missing slots
  // that the options use are filled with zeros. A bucket whose call returns has its steps counted
  // and its slots kept; if `step` throws, the other buckets stay as they were. No gradient is kept
  // afterwards.
  template <class F>
  void step_group(size_t group, F&& step) {
    struct Forget {
      Optimizer& optimizer;
      ~Forget() { optimizer.forget_buckets(); }
    } forget{*this};
    for (auto& bucket : collect(group)) {
      step(bucket);
      keep_slots(bucket);
    }
  }
  // Returns the slots of a group's parameters, at most three.
  virtual std::vector<Slot> slots(size_t group) = 0;
  // Returns the numbers that are remembered for each parameter of a group, at most two.
  virtual std::vector<Memory> memories(size_t) { return {}; }
  // Returns the options of a group, of which the first is the learning rate.
  virtual std::vector<Option> options_of(size_t group) = 0;
  // Throws a ValueError for an option of the group that is outside its range. Constructors and
  // `step` call it, because options() lets anyone change them in between.
  virtual void check_options(size_t group) const = 0;
  // Calls check_options for every group.
  void check_all_options() const {
    for (size_t group = 0; group < groups_.size(); ++group) check_options(group);
  }
  // Returns the number of a group, and throws the IndexError if there is no such group.
  size_t checked(size_t group) const {
    if (group >= groups_.size()) refuse_group(group);
    return group;
  }
  // Throws the ValueError "<name>: <what> is <value>; it has to be <wanted>" unless `ok`.
  void require(bool ok, const char* what, double value, const char* wanted) const;
  // Throws the same unless the number is finite and at least 0.
  void require_not_negative(double value, const char* what) const;
  // Throws the same unless the number is at least 0 and below 1.
  void require_fraction(double value, const char* what) const;
  // The same for the options that Adam and its variants share.
  void require_adam_options(double lr, const std::array<double, 2>& betas, double eps,
                            double weight_decay) const;

 private:
  void add_to_bucket(const Tensor& param, const Tensor& grad, State& state,
                     const std::vector<Slot>& wanted, const std::vector<Memory>& numbers);
  std::vector<Bucket>& collect(size_t group);
  std::vector<std::pair<Option, double>> load_options(detail::StateNumbers& numbers);
  std::vector<double> load_initial_lrs(detail::StateNumbers& numbers) const;
  void load_state(size_t group, size_t i, size_t index, const OptimizerState& from,
                  detail::StateNumbers& numbers, State& state, size_t& used);
  static void keep_slots(Bucket& bucket);
  std::optional<double> number_of(const Storage& memory, std::string_view name);
  void forget_buckets();
  [[noreturn]] void refuse_group(size_t group) const;

  const char* name_;
  const std::shared_ptr<const void> alive_;  // what a compiled function sees the end by
  std::vector<std::vector<Tensor>> groups_;
  std::vector<std::vector<State>> states_;
  std::vector<double> initial_lrs_;  // NaN until somebody asks
  std::vector<Bucket>
      buckets_;  // empty between steps; kept because the next step reuses its memory
};

// The part of an optimizer that keeps the options of the groups.
template <class Options>
class OptimizerOf : public Optimizer {
 public:
  // Returns the options of a group, which may be changed; the next step checks them.
  Options& options(size_t group = 0) { return options_[checked(group)]; }

 protected:
  // Keeps the groups and their options, which it does not check.
  OptimizerOf(const char* name, const std::vector<ParamGroup<Options>>& groups);
  std::vector<Options> options_;  // one for each group
};

// Returns the parameters of each group, for the constructor above.
template <class Options>
std::vector<std::vector<Tensor>> params_of(const std::vector<ParamGroup<Options>>& groups) {
  std::vector<std::vector<Tensor>> params;
  for (auto& group : groups) params.push_back(group.params);
  return params;
}

template <class Options>
OptimizerOf<Options>::OptimizerOf(const char* name, const std::vector<ParamGroup<Options>>& groups)
    : Optimizer(name, params_of(groups)) {
  for (auto& group : groups) options_.push_back(group.options);
}

}  // namespace tenon::optim
