// Special functions of one tensor.
#include <tenon/plugins/sdk/binary_formulas.h>
#include <tenon/plugins/sdk/requests/pointwise.h>
#include <tenon/plugins/sdk/special.h>

#include "kernels/pointwise/functions.h"

namespace tenon::cpu {
namespace {

constexpr NamedRows kSpecial[] = {
    float_function<formulas::Erfc>("erfc", 12, 16),
    float_function<formulas::Erfinv>("erfinv", 60, 60),
    float_function<formulas::Lgamma>("lgamma", 15, 25),
    float_function<formulas::Digamma>("digamma", 30, 30),
};
const sdk::Kernel special(kSpecial, make_unary<kSpecial>);

const sdk::Kernel logit({"logit"}, [](tn_device*, const Request& request) {
  return make_numbered<formulas::Logit>(request, 2, 6);
});

tn_plan* make_polygamma(tn_device*, const Request& request) {
  const auto r = sdk::PolygammaRequest::from(request);
  if (!is_float(r.dtype)) refuse_dtype(r.dtype);
  const formulas::Polygamma f{r.n};
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  Pointwise loop(request, {&request.input(0), nullptr}, 0, 300);
  return sdk::with_float(computed_as(r.dtype), [&loop, f]<class T>(T) {
    auto run = [loop, f](const tn_run& run) {
      const void* in[] = {run.inputs[0], &f};
      loop.run(numbered_row<formulas::Polygamma, T>, run.outputs[0], in);
    };
    return sdk::make_plan(run, {0, loop.cost_ns()});
  });
}
const sdk::Kernel polygamma({"polygamma"}, make_polygamma);

}  // namespace
}  // namespace tenon::cpu
