// Places in sorted sequences.
#include <bit>

#include <tenon/plugins/sdk/requests/order.h>
#include <tenon/plugins/sdk/search.h>

#include "runtime/common.h"

namespace tenon::cpu {
namespace {

template <class T>
tn_plan* search_plan(const sdk::SearchRequest& r) {
  auto body = [r](const tn_run& run) {
    auto* sequence = static_cast<const T*>(run.inputs[0]);
    auto* values = static_cast<const T*>(run.inputs[1]);
    auto* places = static_cast<int64_t*>(run.outputs[0]);
    parallel_for(r.count, kGrain / 8, [&](int64_t begin, int64_t end, uint32_t) {
      for (int64_t i = begin; i < end; ++i) {
        places[i] =
            sdk::place_in_sorted(sequence + i / r.per_row * r.size, r.size, values[i], r.right);
      }
    });
  };
  const auto steps = static_cast<uint64_t>(std::bit_width(static_cast<uint64_t>(r.size)));
  return sdk::make_plan(body, {0, 30 + static_cast<uint64_t>(r.count) * (2 + 2 * steps)});
}

tn_plan* make_search(tn_device*, const Request& request) {
  const auto r = sdk::SearchRequest::from(request);
  if (r.count == 0) return empty_plan();
  return with_number(r.dtype, [&]<class T>(T) { return search_plan<T>(r); });
}
const sdk::Kernel searches({"searchsorted"}, make_search);

}  // namespace
}  // namespace tenon::cpu
