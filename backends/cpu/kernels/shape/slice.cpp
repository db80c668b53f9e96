#include "kernels/shape/part_copy.h"

namespace tenon::cpu {
namespace {

tn_plan* make_slice_backward(tn_device*, const Request& request) {
  const auto part = sdk::slice_part(request);
  auto& y = request.output(0);
  const int64_t bytes = sdk::numel(y) * static_cast<int64_t>(sdk::dtype_size(y.dtype));
  const PartCopy copy{part, StridedCopy(part.to, request.input(0))};
  auto run = [copy, bytes](const tn_run& run) {
    zero_bytes(run.outputs[0], bytes);
    copy.run(run);
  };
  return sdk::make_plan(run, {0, copy.copy.cost_ns() + static_cast<uint64_t>(bytes / 20)});
}
const sdk::Kernel slice_backwards({"slice_backward"}, make_slice_backward);

}  // namespace
}  // namespace tenon::cpu
