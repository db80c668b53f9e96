// Places in sorted sequences.
#include <tenon/plugins/sdk/requests/order.h>
#include <tenon/plugins/sdk/search.h>

#include "device/block_reduce.h"
#include "runtime/common.h"

namespace tenon::cuda {
namespace {

struct RowSearch {
  int64_t size, per_row, count;
  bool right;
};

template <class T>
__global__ void __launch_bounds__(kBlock)
    search_rows(RowSearch s, const T* sequence, const T* values, int64_t* places) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < s.count;
       i += int64_t{gridDim.x} * blockDim.x) {
    const T* const row = sequence + divide(i, s.per_row) * s.size;
    places[i] = sdk::place_in_sorted(row, s.size, values[i], s.right);
  }
}

tn_plan* make_search(tn_device*, const Request& request) {
  const auto r = sdk::SearchRequest::from(request);
  if (r.count == 0) return empty_plan();
  return with_number(r.dtype, [&]<class T>(T) {
    return make_plan([s = RowSearch{r.size, r.per_row, r.count, r.right}](const tn_run& run) {
      launch(run.stream, stride_blocks(*run.stream->device, s.count), kBlock, search_rows<T>, s,
             static_cast<const T*>(run.inputs[0]), static_cast<const T*>(run.inputs[1]),
             static_cast<int64_t*>(run.outputs[0]));
    });
  });
}
const sdk::Kernel searches({"searchsorted"}, make_search);

}  // namespace
}  // namespace tenon::cuda
