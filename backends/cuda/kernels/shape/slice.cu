#include <tenon/plugins/sdk/requests/shape.h>

#include "kernels/shape/copy.h"

namespace tenon::cuda {
namespace {

tn_plan* make_slice_backward(tn_device*, const Request& request) {
  const auto part = sdk::slice_part(request);
  auto& y = request.output(0);
  if (sdk::numel(y) == 0) return empty_plan();
  auto& g = request.input(0);
  return make_plan([part, zeros = StridedFill(y), copy = StridedCopy(part.to, g),
                    empty = sdk::numel(g) == 0](const tn_run& run) {
    zeros.run(run.stream, run.outputs[0], 0);
    if (!empty) copy.run(run.stream, part.destination(run), part.source(run));
  });
}
const sdk::Kernel slice_backwards({"slice_backward"}, make_slice_backward);

}  // namespace
}  // namespace tenon::cuda
