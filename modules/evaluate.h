// Measures a model on a data set, on all of its devices if it is a DataParallel:
//
//   metrics::Accuracy right;
//   metrics::ConfusionMatrix confusion(10);
//   data::DataLoader loader(test, {.batch_size = 500, .shuffle = false});
//   nn::evaluate(net, loader, right, confusion);
//   std::cout << right.compute().item();
#pragma once

#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/core/grad_mode.h>
#include <tenon/modules/module.h>

namespace tenon::nn {

// A guard: in its lifetime the module and those below it are in eval mode.
class TENON_API EvalMode {
 public:
  // Puts the module and those below it into eval mode.
  explicit EvalMode(ModuleRef module);
  // Puts each module back into the mode in which it was.
  ~EvalMode();
  EvalMode(const EvalMode&) = delete;
  EvalMode& operator=(const EvalMode&) = delete;

 private:
  std::vector<std::pair<bool*, bool>> before_;
};

// Calls metric.update(net(x), y) for each metric and each batch (x, y) of the loader, in eval mode
// and without recording. Examples are moved to the device of the net's first parameter (or the
// default device, if it has none), from where a DataParallel spreads them, and targets to that of
// the result, if it is a tensor, which may be another one. Metrics are not reset first, and are
// read by their compute(); until then nothing is waited for. Returns the number of examples: the
// sum of the sizes of dimension 0 of x, where a tensor without dimensions counts as one.
template <class Net, class Loader, class... Metrics>
int64_t evaluate(Net& net, Loader&& loader, Metrics&... metrics) {
  const NoGrad no_grad;
  const EvalMode eval(net);
  const auto parameters = nn::parameters(net);
  const Device device = parameters.empty() ? default_device() : parameters[0].device();
  int64_t examples = 0;
  for (auto&& [x, y] : loader) {
    const auto output = net(x.to(device));
    Device place = device;
    if constexpr (std::is_same_v<decltype(output), const Tensor>) place = output.device();
    const Tensor targets = y.to(place);
    (metrics.update(output, targets), ...);
    examples += x.dim() ? x.size(0) : 1;
  }
  return examples;
}

}  // namespace tenon::nn
