// Where a mask is true.
#include <algorithm>

#include <tenon/plugins/sdk/requests/indexing.h>

#include "device/block_reduce.h"
#include "runtime/common.h"

namespace tenon::cuda {
namespace {

struct MaskPlaces {
  int64_t elements, count;
  int32_t rank;
  int64_t shape[TN_MAX_RANK];
};

__global__ void __launch_bounds__(kBlock)
    list_places(MaskPlaces p, const uint8_t* mask, const int64_t* counts, int64_t* y) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < p.elements;
       i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t row = counts[i] - 1;
    if (!mask[i] || row < 0 || row >= p.count) continue;
    int64_t rest = i;
    for (int d = p.rank; d-- > 0;) {
      const int64_t left = divide(rest, p.shape[d]);
      y[row * p.rank + d] = rest - left * p.shape[d];
      rest = left;
    }
  }
}

tn_plan* make_nonzero(tn_device*, const Request& request) {
  const auto r = sdk::NonzeroRequest::from(request);
  MaskPlaces places{r.elements, r.count, static_cast<int32_t>(r.rank), {}};
  std::copy(r.shape.begin(), r.shape.end(), places.shape);
  return make_plan([places](const tn_run& run) {
    launch(run.stream, stride_blocks(*run.stream->device, places.elements), kBlock, list_places,
           places, static_cast<const uint8_t*>(run.inputs[0]),
           static_cast<const int64_t*>(run.inputs[1]), static_cast<int64_t*>(run.outputs[0]));
  });
}
const sdk::Kernel nonzeros({"nonzero"}, make_nonzero);

}  // namespace
}  // namespace tenon::cuda
