// The states of optimizers and schedulers with parameters by their names in the model, in place of
// their numbers: so a state fits wherever the parameters are the same, in whatever order and groups
// they are listed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include <tenon/modules/module.h>
#include <tenon/modules/optim/lr_scheduler.h>
#include <tenon/modules/optim/optimizer.h>
#include <tenon/serialization/checkpoint_value.h>

namespace tenon {

// All names of each parameter of a model.
class ParameterNames {
 public:
  // Without a model, parameters are called by their position in the optimizer: "0", "1".
  explicit ParameterNames(nn::ModuleRef model);
  // Returns the names of an optimizer's parameters, in their order; the first of each is the one to
  // store. Throws a StateDictError for one that is not in the model.
  std::vector<std::vector<std::string>> of(const optim::Optimizer& optimizer) const;

 private:
  bool known_;
  std::unordered_map<const void*, std::vector<std::string>> names_;
};

// "type": "Adam", "param_groups.0.lr", "param_groups.0.params.0": "fc1.weight",
// "state.fc1.weight.step", and the tensors "state.fc1.weight.exp_avg".
CheckpointValues optimizer_values(optim::Optimizer& optimizer, const ParameterNames& names);

struct FittedOptimizer {
  optim::OptimizerState state;     // for this optimizer
  std::vector<size_t> file_group;  // for each group its number in the file, or SIZE_MAX
  std::vector<std::string> left;   // what stays as it is, if not strict
};
// Finds what belongs to an optimizer. `file_names` has the names of parameters that are called
// differently in the file. Throws a StateDictError if the type or the parameters differ; those of a
// group have to be the same, too. If not `strict`, what does not fit stays as it is in the
// optimizer, except its type.
FittedOptimizer fit_optimizer(optim::Optimizer& optimizer, const CheckpointValues& values,
                              const ParameterNames& names,
                              const std::map<std::string, std::string>& file_names, bool strict);

// A state of a scheduler or scaler as values, and back.
CheckpointValues schedule_values(const optim::SchedulerState& state);
// `file_group` as above, or empty: numbers that belong to a group move with it.
optim::SchedulerState schedule_state(const CheckpointValues& values,
                                     const std::vector<size_t>& file_group = {});

}  // namespace tenon
