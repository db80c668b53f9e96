// Where a mask is true.
#include <string>

#include <tenon/plugins/sdk/requests/indexing.h>

#include "kernels/indexing/index.h"

namespace tenon::cpu {
namespace {

tn_plan* make_nonzero(tn_device*, const Request& request) {
  const auto r = sdk::NonzeroRequest::from(request);
  auto body = [r](const tn_run& run) {
    auto* mask = static_cast<const uint8_t*>(run.inputs[0]);
    auto* counts = static_cast<const int64_t*>(run.inputs[1]);
    auto* y = static_cast<int64_t*>(run.outputs[0]);
    parallel_for(r.elements, kGrain, [&](int64_t begin, int64_t end, uint32_t) {
      for (int64_t i = begin; i < end; ++i) {
        if (!mask[i]) continue;
        const int64_t row = checked(counts[i] - 1, r.count, i);
        int64_t rest = i;
        for (size_t d = r.rank; d-- > 0; rest /= r.shape[d])
          y[row * static_cast<int64_t>(r.rank) + static_cast<int64_t>(d)] = rest % r.shape[d];
      }
    });
  };
  return sdk::make_plan(body, {0, 30 + static_cast<uint64_t>(r.elements + 8 * r.count)});
}
const sdk::Kernel nonzeros({"nonzero"}, make_nonzero);

}  // namespace
}  // namespace tenon::cpu
