// Special functions of one tensor.
#include <tenon/plugins/sdk/binary_formulas.h>
#include <tenon/plugins/sdk/requests/pointwise.h>
#include <tenon/plugins/sdk/special.h>

#include "kernels/pointwise/functions.h"

namespace tenon::cuda {
namespace {

constexpr NamedUnary kSpecial[] = {
    wide_function<formulas::Erfc>("erfc"),
    wide_function<formulas::Erfinv>("erfinv"),
    wide_function<formulas::Lgamma>("lgamma"),
    wide_function<formulas::Digamma>("digamma"),
};
const sdk::Kernel special(kSpecial, make_unary<kSpecial>);

const sdk::Kernel logit({"logit"}, [](tn_device*, const Request& request) {
  return make_numbered<formulas::Logit>(request, 2);
});

using PolygammaStart = void (*)(const Loop<2>& loop, const tn_run& run, int n);
template <class T>
void start_polygamma(const Loop<2>& loop, const tn_run& run, int n) {
  loop.run<formulas::Polygamma, T>(run.stream, formulas::Polygamma{n}, run.outputs[0],
                                   operand<T>(run.inputs[0]));
}
constexpr ByDtype<PolygammaStart> kPolygamma =
    wide_starts([]<class T>(Type<T>) { return start_polygamma<T>; });
tn_plan* make_polygamma(tn_device*, const Request& request) {
  const auto r = sdk::PolygammaRequest::from(request);
  const auto start = kPolygamma.pick(r.dtype);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  return make_plan([loop = loop_over(request, &request.input(0)), start,
                    n = r.n](const tn_run& run) { start(loop, run, n); });
}
const sdk::Kernel polygamma({"polygamma"}, make_polygamma);

}  // namespace
}  // namespace tenon::cuda
