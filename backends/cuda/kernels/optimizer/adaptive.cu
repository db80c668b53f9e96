// RMSprop, Adagrad, NAdam, RAdam and Lion.
#include "kernels/optimizer/steps.h"

namespace tenon::cuda {
namespace {

using namespace sdk::steps;

// The factory of a step that has one kernel for each dtype.
template <class Asked, template <class> class Step>
tn_plan* make_step(tn_device*, const Request& request) {
  const auto r = Asked::from(request);
  return with_float(r.dtype, [&]<class T>(T) { return plan_of<Step<T>>(request, r); });
}

const sdk::Kernel rmsprop_steps({"rmsprop_step"}, [](tn_device*, const Request& request) {
  const auto r = sdk::RmspropRequest::from(request);
  return with_float(r.dtype, [&]<class T>(T) {
    if (r.centered)
      return r.momentum ? plan_of<Rmsprop<T, true, true>>(request, r)
                        : plan_of<Rmsprop<T, true, false>>(request, r);
    return r.momentum ? plan_of<Rmsprop<T, false, true>>(request, r)
                      : plan_of<Rmsprop<T, false, false>>(request, r);
  });
});
const sdk::Kernel adagrad_steps({"adagrad_step"}, make_step<sdk::AdagradRequest, Adagrad>);
const sdk::Kernel nadam_steps({"nadam_step"}, make_step<sdk::NadamRequest, Nadam>);
const sdk::Kernel radam_steps({"radam_step"}, make_step<sdk::RadamRequest, Radam>);
const sdk::Kernel lion_steps({"lion_step"}, make_step<sdk::LionRequest, Lion>);

}  // namespace
}  // namespace tenon::cuda
