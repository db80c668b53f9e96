// The values of a load before they are copied into the model.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include <tenon/modules/module.h>

namespace tenon {

struct Storage;

// Brings all values to the devices of the model before its first tensor is changed, so that every
// failure (memory of a device, an operator, the values themselves) leaves the model as it was. The
// values occupy memory on the devices of the model a second time meanwhile.
class StagedLoad {
 public:
  // `keep`: whether all values are kept until commit(). Otherwise only those of targets that share
  // memory are, and commit(again) gets the others a second time.
  explicit StagedLoad(nn::ModuleRef model, bool keep = true);

  // Returns the tensors of the model in order. A tensor with several names is listed several times.
  const std::vector<nn::StateEntry>& targets() const { return targets_; }
  // Prepares the values for targets()[target]: `source`, converted to its dtype, on its device, in
  // memory that no target shares. Waits for the work, and throws if it fails.
  void add(size_t target, const Tensor& source);
  // Returns the values that were added for targets()[target], if they are kept.
  const Tensor& values(size_t target) const { return values_[target]; }
  // Changes the model: a tensor of the host that shares its memory with no other gets that of the
  // values in its place, and what others can see is copied. Only a device that is lost meanwhile,
  // or a host without a kilobyte of free memory, can prevent this from being finished.
  void commit();
  // The same where not all values are kept: again(target) gives what was added. If it throws, the
  // model has been changed in part.
  void commit(const std::function<Tensor(size_t target)>& again);

 private:
  Tensor converted(size_t target, const Tensor& source) const;

  bool keep_;
  std::vector<nn::StateEntry> targets_;
  std::unordered_map<const Storage*, size_t> owned_;  // the memory of the model: how many targets
  std::vector<Tensor> values_;  // one for each target; undefined if none was added
  std::vector<size_t> steps_;   // the positions of the targets to change
};

}  // namespace tenon
