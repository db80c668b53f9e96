// Schedulers of learning rates: the result are the rates in force at each step. They say nothing
// about a backend, and their cases show that schedules are PyTorch's.
#pragma once

#include <memory>

#include <tenon/conformance/case.h>
#include <tenon/modules/optim/lr_cycles.h>
#include <tenon/modules/optim/lr_scheduler.h>
#include <tenon/modules/optim/sgd.h>

namespace tenon::conformance {

// `node`: {"op": the class, "args": its arguments}.
std::shared_ptr<optim::LRScheduler> make_scheduler(const json& node, optim::Optimizer& optimizer);

// args: such a node. The one input of ReduceLROnPlateau is the metric of each step.
List call_schedule(const json& args, const List& in);

inline std::vector<Line> schedule_cases() {
  std::vector<Line> lines;
  for (const char* name : {"StepLR", "MultiStepLR", "ConstantLR", "LinearLR", "ExponentialLR",
                           "PolynomialLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts",
                           "OneCycleLR", "CyclicLR", "SequentialLR", "ReduceLROnPlateau"})
    lines.push_back({name, call_schedule, kNoTypes, {}, {.difference = 0}});
  return lines;
}

}  // namespace tenon::conformance
