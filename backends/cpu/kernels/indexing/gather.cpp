// gather and its gradient: one element an index, any strides.
#include <cstring>

#include <tenon/plugins/sdk/requests/indexing.h>

#include "kernels/indexing/indexing.h"
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

// gx at index += g. Elements that differ in a dimension before `dim` never meet, so these are
// shared out; the rest goes in order.
template <class T, class I>
struct GatherBackward {
  std::string op;
  Nest outer, inner;  // index (contiguous), g, gx: the dimensions before dim, and the others
  int64_t size, stride, elements;

  void operator()(const tn_run& run) const {
    auto* index = static_cast<const I*>(run.inputs[1]);
    auto* g = static_cast<const T*>(run.inputs[0]);
    auto* gx = static_cast<T*>(run.outputs[0]);
    zero_bytes(gx, elements * static_cast<int64_t>(sizeof(T)));
    Tiling blocks{outer, 1, 1}, rows{inner, 1, inner.cols()};
    int64_t step[] = {inner.col_stride(0), inner.col_stride(1), inner.col_stride(2)};
    parallel_for(blocks.count(), std::max<int64_t>(1, kGrain / 2 / inner.numel),
                 [&](int64_t begin, int64_t end, uint32_t) {
                   blocks.walk(begin, end, [&](const int64_t* base, int64_t, int64_t) {
                     auto add_row = [&](const int64_t* at, int64_t, int64_t cols) {
                       for (int64_t k = 0; k < cols; ++k) {
                         int64_t position = base[0] + at[0] + k * step[0];
                         int64_t i = checked(op, index[position], size, position);
                         gx[base[2] + at[2] + k * step[2] + i * stride] +=
                             g[base[1] + at[1] + k * step[1]];
                       }
                     };
                     constexpr int64_t origin[kMaxOperands] = {};
                     inner.rank <= 1 ? add_row(origin, 1, inner.cols())
                                     : rows.walk(0, rows.count(), add_row);
                   });
                 });
  }
};

tn_plan* make_gather_backward(tn_device*, const Request& request) {
  const auto r = sdk::GatherRequest::from(request);
  auto &g = request.input(0), &index = request.input(1), &gx = request.output(0);
  require_contiguous(index);
  const int64_t elements = sdk::numel(gx), count = sdk::numel(index);
  if (elements == 0) return empty_plan();
  if (count == 0)
    return sdk::make_plan([bytes = elements * static_cast<int64_t>(sdk::dtype_size(r.dtype))](
                              const tn_run& run) { zero_bytes(run.outputs[0], bytes); });
  auto nest = [&](size_t begin, size_t end) {
    auto i = dims_between(index, begin, end), from = dims_between(g, begin, end),
         to = dims_between(r.seen, begin, end);
    return Nest({&i, &from, &to});
  };
  return with_float(r.dtype, [&]<class T>(T) {
    return with_index(r.index, [&]<class I>(I) {
      GatherBackward<T, I> run{std::string(request.op()),
                               nest(0, r.dim),
                               nest(r.dim, index.rank),
                               r.size,
                               r.stride,
                               elements};
      return sdk::make_plan(std::move(run),
                            {0, 30 + static_cast<uint64_t>(elements / 4 + 2 * count)});
    });
  });
}
const sdk::Kernel gather_gradients({"gather_backward"}, make_gather_backward);

}  // namespace
}  // namespace tenon::cpu
