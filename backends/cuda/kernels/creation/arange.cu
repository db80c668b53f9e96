// An arithmetic sequence.
#include <cmath>

#include "kernels/pointwise/pointwise.h"

namespace tenon::cuda {
namespace {

__device__ inline double term(double start, double step, int64_t k) {
  return fma(static_cast<double>(k), step, start);
}
__device__ inline uint64_t term(uint64_t start, uint64_t step, int64_t k) {
  return start + static_cast<uint64_t>(k) * step;
}

template <class T, class Number>
__global__ void __launch_bounds__(kBlock) sequence(T* y, int64_t n, Number start, Number step) {
  int64_t stride = static_cast<int64_t>(gridDim.x) * kBlock;
  for (int64_t k = static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x; k < n; k += stride)
    y[k] = static_cast<T>(term(start, step, k));
}

tn_plan* make_arange(tn_device* device, const Request& request) {
  sdk::require_scalars(request, 2);
  auto& y = request.output(0);
  require_contiguous(y);
  int64_t n = sdk::numel(y);
  if (n == 0) return empty_plan();
  return with_number(y.dtype, [n, blocks = stride_blocks(*device, n)]<class T>(T) {
    return make_plan([n, blocks](const tn_run& run) {
      auto* s = run.scalars;
      auto* to = static_cast<T*>(run.outputs[0]);
      if constexpr (std::is_floating_point_v<T>) {
        launch(run.stream, blocks, kBlock, sequence<T, double>, to, n, s[0].f, s[1].f);
      } else {
        launch(run.stream, blocks, kBlock, sequence<T, uint64_t>, to, n,
               static_cast<uint64_t>(s[0].i), static_cast<uint64_t>(s[1].i));
      }
    });
  });
}
const sdk::Kernel aranges({"arange"}, make_arange);

}  // namespace
}  // namespace tenon::cuda
