// What all optimizers share.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <tenon/core/tensor.h>
#include <tenon/modules/state_dict.h>

namespace tenon::optim {

// Parameters that are stepped with options of their own.
template <class Options>
struct ParamGroup {
  std::vector<Tensor> params;
  Options options = {};
};

// All that an optimizer needs to go on as if it had never stopped. Parameters are numbered in the
// order in which they were given.
struct OptimizerState {
  nn::StateDict tensors;  // "state.0.momentum_buffer"
  std::vector<std::pair<std::string, double>>
      numbers;  // "state.0.step", "param_groups.0.lr"; flags are 0 or 1
};

// Holds handles: parameters may move to another device or be loaded anew, and are still the ones
// that are stepped. Made with ValueError where there is no parameter, one is given twice or is no
// leaf, or an option makes no sense.
class TENON_API Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Changes each parameter that has a gradient, in place.
  virtual void step() = 0;
  // Drops the gradients, or sets them to zero.
  void zero_grad(bool set_to_none = true);

  size_t num_groups() const { return groups_.size(); }
  const std::vector<Tensor>& params(size_t group = 0) const { return groups_.at(group); }
  double lr(size_t group = 0);
  void set_lr(double lr);  // of all groups
  void set_lr(double lr, size_t group);

  OptimizerState state_dict();
  // StateDictError where it is another optimizer's or other parameters'; nothing is changed then.
  void load_state_dict(const OptimizerState& state);

 protected:
  struct Slot {
    const char* name;  // "exp_avg"
    bool used;         // by the options of that group
  };
  struct Option {
    const char* name;          // "lr"
    double* number = nullptr;  // one of both
    bool* flag = nullptr;
  };
  // What is remembered of a parameter: steps taken, and tensors of its shape.
  struct State {
    int64_t step = 0;
    Tensor slots[3];
  };
  // Parameters that one call of a fused operator can step: of one device and dtype, and as far
  // along as each other.
  struct Bucket {
    Device device;
    DType dtype;
    int64_t step;  // taken before this one
    bool fresh;    // its slots are new
    std::vector<Tensor> params, grads, slots[3];
    std::vector<State*> states;
  };

  Optimizer(const char* name, std::vector<std::vector<Tensor>> groups);

  // Calls `step` with those of a group that have a gradient; used slots are made (zero) where they
  // are missing. What was stepped counts and keeps its slots; where `step` throws, the rest is as
  // if it had never been tried. No gradient is held afterwards.
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
  // ValueError "<name>: <what> is <value>; it has to be <wanted>" unless `ok`.
  void require(bool ok, const char* what, double value, const char* wanted) const;

 private:
  std::vector<Bucket>& collect(size_t group);
  static void keep_slots(Bucket& bucket);
  void forget_buckets();

  const char* name_;
  std::vector<std::vector<Tensor>> groups_;
  std::vector<std::vector<State>> states_;
  std::vector<Bucket> buckets_;  // kept for its memory
};

// The parameters of groups, for the constructor above.
template <class Options>
std::vector<std::vector<Tensor>> params_of(const std::vector<ParamGroup<Options>>& groups) {
  std::vector<std::vector<Tensor>> params;
  for (auto& group : groups) params.push_back(group.params);
  return params;
}

}  // namespace tenon::optim
