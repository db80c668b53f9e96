// gather, which takes one element for each index, from any strides, and its gradient, which adds at
// the index.
#include <cstring>

#include <tenon/plugins/sdk/scatter.h>

#include "kernels/indexing/scatter.h"

namespace tenon::cpu {
namespace {

// y = x at index; T stands for any dtype of its size.
template <class T, class I>
struct Gather {
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
                     constexpr int64_t kBlock = 512;
                     for (int64_t k = 0; k < cols; k += kBlock)
                       take(std::min(kBlock, cols - k), y + at[0] + k, x + at[2] + k * x_step,
                            x_step, index + at[1] + k * step, step, at[0] + k);
                   });
                 });
  }

  // Indices are checked before they are used, in a loop of its own that compilers make vectors of.
  void take(int64_t n, T* y, const T* x, int64_t x_step, const I* index, int64_t step,
            int64_t position) const {
    bool outside = false;
    for (int64_t k = 0; k < n; ++k)
      outside |= static_cast<uint64_t>(index[k * step]) >= static_cast<uint64_t>(size);
    for (int64_t k = 0; outside && k < n; ++k) checked(index[k * step], size, position + k);
    if (x_step == 0 && step == 1 && stride == 1)
      put(n, y, [=](int64_t k) { return x[index[k]]; });
    else
      put(n, y, [=, this](int64_t k) { return x[k * x_step + index[k * step] * stride]; });
  }

  // Eight elements at a time, which are stored together. Compilers would make a loop of single
  // ones a loop of gather instructions, which take longer than loads on some processors.
  template <class At>
  static void put(int64_t n, T* y, At at) {
    int64_t k = 0;
    for (; k + 8 <= n; k += 8) {
      const T eight[] = {at(k),     at(k + 1), at(k + 2), at(k + 3),
                         at(k + 4), at(k + 5), at(k + 6), at(k + 7)};
      std::memcpy(y + k, eight, sizeof eight);
    }
    for (; k < n; ++k) y[k] = at(k);
  }
};

tn_plan* make_gather(tn_device*, const Request& request) {
  const auto r = sdk::GatherRequest::from(request);
  auto& y = request.output(0);
  if (sdk::numel(y) == 0) return empty_plan();
  Nest nest({&y, &request.input(1), &r.seen});
  return with_width(y.dtype, [&]<class T>(T) {
    return with_index(r.index, [&]<class I>(I) {
      Gather<T, I> run{nest, r.size, r.stride};
      return sdk::make_plan(std::move(run), {0, 30 + static_cast<uint64_t>(2 * nest.numel)});
    });
  });
}
const sdk::Kernel gathers({"gather"}, make_gather);

// Fills gx with zeros and adds g at the index.
tn_plan* make_gather_backward(tn_device*, const Request& request) {
  const auto r = sdk::GatherRequest::from(request);
  auto& index = request.input(1);
  require_contiguous(index);
  const int64_t elements = sdk::numel(request.output(0)), count = sdk::numel(index),
                bytes = elements * static_cast<int64_t>(sdk::dtype_size(r.dtype));
  if (elements == 0) return empty_plan();
  if (count == 0)
    return sdk::make_plan([bytes](const tn_run& run) { zero_bytes(run.outputs[0], bytes); });
  const ScatterWalk walk(request, 0, r.seen, r.dim, r.size, r.stride);
  return with_float(r.dtype, [&]<class T>(T) {
    return with_index(r.index, [&]<class I>(I) {
      return sdk::make_plan(
          [walk](const tn_run& run) { walk(run, nullptr, nullptr, put_row<sdk::AddTo<T>, T, I>); },
          {0, 30 + static_cast<uint64_t>(elements / 4 + 2 * count)});
    });
  });
}
const sdk::Kernel gather_gradients({"gather_backward"}, make_gather_backward);

}  // namespace
}  // namespace tenon::cpu
