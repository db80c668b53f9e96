// One value everywhere.
#include <cstring>

#include "kernels/shape/copy.h"

namespace tenon::cpu {
namespace {

// The value as the dtype stores it, in the lowest bytes.
uint64_t bits_of(tn_dtype dtype, const tn_scalar& s) {
  uint64_t bits = 0;
  if (is_float(dtype)) {
    convert_row(dtype, TN_F64)(1, &bits, &s.f);
  } else {
    convert_row(dtype, TN_I64)(1, &bits, &s.i);
  }
  return bits;
}

tn_plan* make_fill(tn_device*, const Request& request) {
  sdk::require_scalars(request, 1);
  auto& y = request.output(0);
  int64_t n = sdk::numel(y), size = static_cast<int64_t>(sdk::dtype_size(y.dtype));
  if (n == 0) return empty_plan();
  sdk::PlanOptions options{0, 20 + static_cast<uint64_t>(n * size / 16)};
  Nest nest({&y});
  nest.sort();
  if (nest.rank == 0 || (nest.rank == 1 && nest.col_stride(0) == 1))
    return with_width(y.dtype, [&]<class T>(T) {
      auto run = [n, dtype = y.dtype](const tn_run& run) {
        const T value = static_cast<T>(bits_of(dtype, run.scalars[0]));
        parallel_for(n, 2 * kGrain, [&](int64_t begin, int64_t end, uint32_t) {
          auto* to = static_cast<T*>(run.outputs[0]);
          std::fill(to + begin, to + end, value);
        });
      };
      return sdk::make_plan(run, options);
    });
  tn_tensor_desc value = y;  // one element, expanded
  std::fill(std::begin(value.strides), std::end(value.strides), 0);
  StridedCopy spread(y, value);
  auto run = [spread, dtype = y.dtype](const tn_run& run) {
    uint64_t bits = bits_of(dtype, run.scalars[0]);
    spread.run(run.outputs[0], &bits);
  };
  return sdk::make_plan(run, options);
}
const sdk::Kernel fills({"fill"}, make_fill);

}  // namespace
}  // namespace tenon::cpu
