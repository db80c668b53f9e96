// gather: one element an index, any strides. Its gradient is in scatter.cpp.
#include <cstring>

#include <tenon/plugins/sdk/requests/indexing.h>

#include "kernels/indexing/index.h"
#include "kernels/shape/copy.h"

namespace tenon::cpu {
namespace {

// y = x at index; T stands for any dtype of its size.
template <class T, class I>
struct Gather {
  std::string op;
  Nest nest;  // y, index, x
  int64_t size, stride;

  void operator()(const tn_run& run) const {
    auto* y = static_cast<T*>(run.outputs[0]);
    auto* x = static_cast<const T*>(run.inputs[0]);
    auto* index = static_cast<const I*>(run.inputs[1]);
    Tiling tiling{nest, 1, kGrain};
    int64_t count = tiling.count(), step = nest.col_stride(1), x_step = nest.col_stride(2);
    parallel_for(count, std::max<int64_t>(1, kGrain / 2 * count / nest.numel),
                 [&](int64_t begin, int64_t end, uint32_t) {
                   tiling.walk(begin, end, [&](const int64_t* at, int64_t, int64_t cols) {
                     for (int64_t k = 0; k < cols; ++k) {
                       int64_t i = checked(op, index[at[1] + k * step], size, at[0] + k);
                       y[at[0] + k] = x[at[2] + k * x_step + i * stride];
                     }
                   });
                 });
  }
};

tn_plan* make_gather(tn_device*, const Request& request) {
  const auto r = sdk::GatherRequest::from(request);
  auto& y = request.output(0);
  if (sdk::numel(y) == 0) return empty_plan();
  Nest nest({&y, &request.input(1), &r.seen});
  return with_width(y.dtype, [&]<class T>(T) {
    return with_index(r.index, [&]<class I>(I) {
      Gather<T, I> run{std::string(request.op()), nest, r.size, r.stride};
      return sdk::make_plan(std::move(run), {0, 30 + static_cast<uint64_t>(2 * nest.numel)});
    });
  });
}
const sdk::Kernel gathers({"gather"}, make_gather);

}  // namespace
}  // namespace tenon::cpu
