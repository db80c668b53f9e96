// Values on their way into a model. Internal to serialization.
#pragma once

#include <unordered_set>
#include <vector>

#include <tenon/modules/module.h>

namespace tenon {

struct Storage;

// Brings all values to where they belong before the first tensor of the model is changed, so that
// whatever fails (memory of a device, an operator, the values themselves) leaves the model as it
// was. Takes memory for the values once more, on the devices of the model.
class StagedLoad {
 public:
  explicit StagedLoad(nn::ModuleRef model);

  // The model's tensors, in order; a tensor of several places is there several times.
  const std::vector<nn::StateEntry>& targets() const { return targets_; }
  // Makes ready what targets()[target] is to hold: `source`, converted to its dtype, on its device,
  // in memory that no target shares. Throws where that fails, after waiting for it.
  void add(size_t target, const Tensor& source);
  // What was added for targets()[target].
  const Tensor& values(size_t target) const { return values_[target]; }
  // Changes the model. Only a device that is lost meanwhile, or a host without a kilobyte of
  // memory, can keep it from being finished.
  void commit();

 private:
  std::vector<nn::StateEntry> targets_;
  std::unordered_set<const Storage*> owned_;  // by the model
  std::vector<Tensor> values_;                // for each target; undefined where nothing was added
  std::vector<size_t> steps_;                 // positions of the targets to change
};

}  // namespace tenon
