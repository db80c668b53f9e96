// The numbers of the elements in which several indices meet.
#include <tenon/plugins/sdk/requests/indexing.h>

#include "runtime/common.h"

namespace tenon::cpu {
namespace {

tn_plan* make_ravel(tn_device*, const Request& request) {
  const auto r = sdk::RavelRequest::from(request);
  auto body = [r](const tn_run& run) {
    auto* y = static_cast<int64_t*>(run.outputs[0]);
    parallel_for(r.count, kGrain / 4, [&](int64_t begin, int64_t end, uint32_t) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t number = 0;
        for (size_t k = 0; k < r.indices; ++k) {
          const int64_t given = static_cast<const int64_t*>(run.inputs[k])[i], size = r.sizes[k];
          if (given < -size || given >= size)
            throw sdk::Error(
                TN_CODE_OUT_OF_RANGE,
                sdk::text("index {} at position {} is outside [{}, {})", given, i, -size, size));
          number = number * size + (given < 0 ? given + size : given);
        }
        y[i] = number;
      }
    });
  };
  return sdk::make_plan(
      body, {0, 30 + static_cast<uint64_t>(2 * r.count) * static_cast<uint64_t>(r.indices)});
}
const sdk::Kernel ravels({"ravel_index"}, make_ravel);

}  // namespace
}  // namespace tenon::cpu
