// The base of all optimizers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <tenon/core/tensor.h>
#include <tenon/modules/state_dict.h>

namespace tenon::optim {

// Parameters with their own options.
template <class Options>
struct ParamGroup {
  std::vector<Tensor> params;
  Options options = {};
};

// Everything that an optimizer needs to continue as if it had never stopped. Parameters are
// numbered in the order in which they were given.
struct OptimizerState {
  nn::StateDict tensors;  // "state.0.momentum_buffer"
  // "state.0.step", "param_groups.0.lr"; flags are 0 or 1.
  std::vector<std::pair<std::string, double>> numbers;
};

// An optimizer has handles of its parameters, so they may be moved to another device or loaded from
// a checkpoint, and it still updates them. Constructors throw a ValueError if there is no
// parameter, if one is given twice or is not a leaf, or for an option outside its range, and a
// DTypeError for a parameter that is not floating.
class TENON_API Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Updates each parameter that has a gradient, in place. Throws a ValueError, and changes nothing,
  // if an option is outside its range by now.
  virtual void step() = 0;
  // Drops the gradients of all parameters, or sets them to zero.
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
  // Sets the learning rate of one group.
  void set_lr(double lr, size_t group);

  // Returns the state. Its tensors are handles: a later step changes them.
  OptimizerState state_dict();
  // Replaces the state by a copy of another. Throws a StateDictError if it comes from another kind
  // of optimizer, does not fit the parameters, lacks tensors, or has an option outside its range;
  // nothing is changed then.
  void load_state_dict(const OptimizerState& state);

 protected:
  struct Slot {
    const char* name;  // "exp_avg"
    bool used;         // by the options of that group
    bool steady;       // used slots of a parameter that has made steps exist, or start at zero
  };
  struct Option {
    const char* name;          // "lr"
    double* number = nullptr;  // either this or the flag is set
    bool* flag = nullptr;
  };
  // What the optimizer remembers about a parameter: the number of steps, and tensors of its shape.
  struct State {
    int64_t step = 0;
    Tensor slots[3];
  };
  // Parameters that one call of a fused operator can update: they have one device, one dtype and
  // the same number of steps.
  struct Bucket {
    Device device;
    DType dtype;
    int64_t step;  // the number of earlier steps
    bool fresh;    // whether the slots are new
    std::vector<Tensor> params, grads, slots[3];
    std::vector<State*> states;
  };

  Optimizer(const char* name, std::vector<std::vector<Tensor>> groups);

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
  virtual std::vector<Slot> slots(size_t group) = 0;
  virtual std::vector<Option> options_of(size_t group) = 0;
  // Throws a ValueError for an option of the group that is outside its range. Constructors and
  // `step` call it, because options() lets anyone change them in between.
  virtual void check_options(size_t group) const = 0;
  void check_all_options() const {
    for (size_t group = 0; group < groups_.size(); ++group) check_options(group);
  }
  // Returns the group; throws the IndexError if there is none of that number.
  size_t checked(size_t group) const {
    if (group >= groups_.size()) refuse_group(group);
    return group;
  }
  // Throws the ValueError "<name>: <what> is <value>; it has to be <wanted>" unless `ok`.
  void require(bool ok, const char* what, double value, const char* wanted) const;
  // The same for a number that has to be finite and at least 0.
  void require_not_negative(double value, const char* what) const;

 private:
  std::vector<Bucket>& collect(size_t group);
  static void keep_slots(Bucket& bucket);
  void forget_buckets();
  [[noreturn]] void refuse_group(size_t group) const;

  const char* name_;
  std::vector<std::vector<Tensor>> groups_;
  std::vector<std::vector<State>> states_;
  std::vector<Bucket>
      buckets_;  // empty between steps; kept because the next step reuses its memory
};

// Returns the parameters of groups, for the constructor above.
template <class Options>
std::vector<std::vector<Tensor>> params_of(const std::vector<ParamGroup<Options>>& groups) {
  std::vector<std::vector<Tensor>> params;
  for (auto& group : groups) params.push_back(group.params);
  return params;
}

}  // namespace tenon::optim
