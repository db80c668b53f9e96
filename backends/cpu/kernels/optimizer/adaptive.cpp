// RMSprop, Adagrad, NAdam, RAdam and Lion.
#include "kernels/optimizer/steps.h"

namespace tenon::cpu {
namespace {

using namespace sdk::steps;

// The factory of a step that has one kernel for each dtype. An element takes `Ps` picoseconds.
template <class Asked, template <class> class Step, int Ps>
tn_plan* make_step(tn_device*, const Request& request) {
  const auto r = Asked::from(request);
  return with_float(computed_as(r.dtype),
                    [&]<class T>(T) { return plan_of<Step<T>>(request, r, Ps / 1000.0); });
}

const sdk::Kernel rmsprop_steps({"rmsprop_step"}, [](tn_device*, const Request& request) {
  const auto r = sdk::RmspropRequest::from(request);
  return with_float(computed_as(r.dtype), [&]<class T>(T) {
    if (r.centered)
      return r.momentum ? plan_of<Rmsprop<T, true, true>>(request, r, 0.4)
                        : plan_of<Rmsprop<T, true, false>>(request, r, 0.4);
    return r.momentum ? plan_of<Rmsprop<T, false, true>>(request, r, 0.4)
                      : plan_of<Rmsprop<T, false, false>>(request, r, 0.4);
  });
});
const sdk::Kernel adagrad_steps({"adagrad_step"}, make_step<sdk::AdagradRequest, Adagrad, 360>);
const sdk::Kernel nadam_steps({"nadam_step"}, make_step<sdk::NadamRequest, Nadam, 500>);
const sdk::Kernel radam_steps({"radam_step"}, make_step<sdk::RadamRequest, Radam, 500>);
const sdk::Kernel lion_steps({"lion_step"}, make_step<sdk::LionRequest, Lion, 300>);

}  // namespace
}  // namespace tenon::cpu
