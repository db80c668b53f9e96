// An arithmetic sequence.
#include "runtime/common.h"

namespace tenon::cpu {
namespace {

template <class T>
void arange_part(T* y, int64_t begin, int64_t end, const tn_scalar* s) {
  if constexpr (std::is_floating_point_v<T>) {
    double start = s[0].f, step = s[1].f;
    for (int64_t k = begin; k < end; ++k)
      y[k] = static_cast<T>(start + static_cast<double>(k) * step);
  } else {
    uint64_t start = static_cast<uint64_t>(s[0].i), step = static_cast<uint64_t>(s[1].i);
    for (int64_t k = begin; k < end; ++k)
      y[k] = static_cast<T>(start + static_cast<uint64_t>(k) * step);
  }
}

tn_plan* make_arange(tn_device*, const Request& request) {
  sdk::require_scalars(request, 2);
  auto& y = request.output(0);
  require_contiguous(y);
  return with_number(y.dtype, [n = sdk::numel(y)]<class T>(T) {
    auto run = [n](const tn_run& run) {
      parallel_for(n, kGrain, [&](int64_t begin, int64_t end, uint32_t) {
        arange_part(static_cast<T*>(run.outputs[0]), begin, end, run.scalars);
      });
    };
    return sdk::make_plan(run, {0, 20 + static_cast<uint64_t>(n)});
  });
}
const sdk::Kernel aranges({"arange"}, make_arange);

}  // namespace
}  // namespace tenon::cpu
