// SGD, Adam and AdamW.
#include "kernels/optimizer/steps.h"

namespace tenon::cuda {
namespace {

using namespace sdk::steps;

const sdk::Kernel sgd_steps({"sgd_step"}, [](tn_device*, const Request& request) {
  const auto r = sdk::SgdRequest::from(request);
  return with_float(r.dtype, [&]<class T>(T) {
    return !r.momentum  ? plan_of<Sgd<T, false, false>>(request, r)
           : r.nesterov ? plan_of<Sgd<T, true, true>>(request, r)
                        : plan_of<Sgd<T, true, false>>(request, r);
  });
});

const sdk::Kernel adam_steps({"adam_step"}, [](tn_device*, const Request& request) {
  const auto r = sdk::AdamRequest::from(request);
  return with_float(r.dtype, [&]<class T>(T) {
    return r.amsgrad ? plan_of<Adam<T, true>>(request, r) : plan_of<Adam<T, false>>(request, r);
  });
});

}  // namespace
}  // namespace tenon::cuda
