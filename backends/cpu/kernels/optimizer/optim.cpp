// SGD, Adam and AdamW.
#include "kernels/optimizer/steps.h"

namespace tenon::cpu {
namespace {

using namespace sdk::steps;

const sdk::Kernel sgd_steps({"sgd_step"}, [](tn_device*, const Request& request) {
  const auto r = sdk::SgdRequest::from(request);
  return with_float(computed_as(r.dtype), [&]<class T>(T) {
    return !r.momentum  ? plan_of<Sgd<T, false, false>>(request, r, 0.12)
           : r.nesterov ? plan_of<Sgd<T, true, true>>(request, r, 0.2)
                        : plan_of<Sgd<T, true, false>>(request, r, 0.2);
  });
});

const sdk::Kernel adam_steps({"adam_step"}, [](tn_device*, const Request& request) {
  const auto r = sdk::AdamRequest::from(request);
  return with_float(computed_as(r.dtype), [&]<class T>(T) {
    return r.amsgrad ? plan_of<Adam<T, true>>(request, r, 0.5)
                     : plan_of<Adam<T, false>>(request, r, 0.5);
  });
});

}  // namespace
}  // namespace tenon::cpu
