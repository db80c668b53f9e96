// What is made of copies: cat, slice_backward.
#include <tenon/plugins/sdk/dims.h>

#include "kernels/shape/copy.h"

namespace tenon::cuda {
namespace {

using sdk::dim_of, sdk::section, sdk::stride_of;

tn_plan* make_cat(tn_device*, const Request& request) {
  struct Part {
    size_t input;
    StridedCopy copy;
    int64_t byte_offset;
  };
  auto& y = request.output(0);
  require_contiguous(request, y);
  if (sdk::numel(y) == 0) return empty_plan();
  size_t dim = dim_of(request, y);
  int64_t unit = stride_of(y, dim) * static_cast<int64_t>(sdk::dtype_size(y.dtype)), start = 0;
  std::vector<Part> parts;
  for (size_t i = 0; i < request.num_inputs(); ++i) {
    auto& x = request.input(i);
    if (x.dtype != y.dtype || x.rank != y.rank)
      sdk::invalid("cat: inputs and output differ in dtype or rank");
    if (sdk::numel(x) > 0)
      parts.push_back({i, StridedCopy(section(y, x, dim, 1), x), start * unit});
    start += x.shape[dim];
  }
  if (start != y.shape[dim]) sdk::invalid("cat: the inputs do not fill the output");
  return make_plan([parts = std::move(parts)](const tn_run& run) {
    for (auto& part : parts)
      part.copy.run(run.stream, static_cast<char*>(run.outputs[0]) + part.byte_offset,
                    run.inputs[part.input]);
  });
}
const sdk::Kernel cats({"cat"}, make_cat);

tn_plan* make_slice_backward(tn_device*, const Request& request) {
  auto &g = request.input(0), &y = request.output(0);
  require_contiguous(request, y);
  if (sdk::numel(y) == 0) return empty_plan();
  size_t dim = dim_of(request, y);
  int64_t start = request.get_int("start"), step = request.get_int("step"), count = g.shape[dim];
  if (start < 0 || step < 1 || (count > 0 && start + (count - 1) * step >= y.shape[dim]) ||
      g.dtype != y.dtype)
    sdk::invalid("slice_backward: the slice does not fit its output");
  int64_t offset = start * stride_of(y, dim) * static_cast<int64_t>(sdk::dtype_size(y.dtype));
  auto run = [zeros = StridedFill(y), copy = StridedCopy(section(y, g, dim, step), g), offset,
              empty = sdk::numel(g) == 0](const tn_run& run) {
    zeros.run(run.stream, run.outputs[0], 0);
    if (!empty) copy.run(run.stream, static_cast<char*>(run.outputs[0]) + offset, run.inputs[0]);
  };
  return make_plan(std::move(run));
}
const sdk::Kernel slice_backwards({"slice_backward"}, make_slice_backward);

}  // namespace
}  // namespace tenon::cuda
