#include "kernels/pointwise/finish.h"

namespace tenon::cpu {

Finish finish_of(const sdk::Request& request) {
  const auto asked = sdk::ActivationRequest::from(request);
  if (!asked) return {};
  const tn_dtype dtype = request.output(0).dtype;
  for (auto* find : {finish_by_activation, finish_by_smooth, finish_by_clamp})
    if (const Finish finish = find(asked.op, dtype)) return finish;
  sdk::unsupported("has no rows of the activation \"{}\"", asked.op);
}

}  // namespace tenon::cpu
