// Average pooling over windows that follow from the size of the result. Gradients are gathered, as
// those of avg_pool.cu.
#include "kernels/pooling/pool.h"

namespace tenon::cuda {
namespace {

// Rows or columns that output i of n covers, of `size`.
__device__ inline Span adaptive_window(int64_t i, int64_t n, int64_t size) {
  return {divide(i * size, n), divide((i + 1) * size + n - 1, n)};
}

// A group of threads averages each window, which may be the whole plane.
template <class T>
__global__ void __launch_bounds__(kBlock)
    adaptive_average(Pool p, const T* x, T* y, unsigned lanes) {
  __shared__ T shared[32];
  const Group group = Group::of(lanes);
  const int64_t n = p.planes * p.oh * p.ow, turns = group.turns(n);
  for (int64_t turn = 0; turn < turns; ++turn) {
    const int64_t at = turn * group.count + group.index;
    const auto [plane, row, column] = p.out_pixel(at < n ? at : n - 1);
    const Span rows = adaptive_window(row, p.oh, p.h), columns = adaptive_window(column, p.ow, p.w);
    const int64_t wide = columns.end - columns.begin, size = (rows.end - rows.begin) * wide;
    const T* from = x + (plane * p.h + rows.begin) * p.w + columns.begin;
    T sum = 0;
#pragma unroll 2
    for (int64_t e = group.lane; e < size; e += group.lanes) {
      const int64_t i = wide == p.w ? 0 : divide(e, wide);
      sum += from[wide == p.w ? e : i * p.w + e - i * wide];
    }
    sum = group.reduce(sum, Add{}, shared);
    if (group.lane == 0 && at < n) y[at] = sum / static_cast<T>(size);
  }
}

// Outputs whose windows hold element i: begin(r) <= i is r * size < (i + 1) * n, and end(r) > i is
// (r + 1) * size > i * n.
__device__ inline Span adaptive_windows_over(int64_t i, int64_t n, int64_t size) {
  return {divide(i * n, size), divide((i + 1) * n - 1, size) + 1};
}

template <class T>
__global__ void __launch_bounds__(kBlock) adaptive_average_backward(Pool p, const T* g, T* gx) {
  const int64_t n = p.planes * p.h * p.w;
  for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < n;
       at += int64_t{gridDim.x} * blockDim.x) {
    const auto [plane, row, column] = p.in_pixel(at);
    const Span rows = adaptive_windows_over(row, p.oh, p.h),
               columns = adaptive_windows_over(column, p.ow, p.w);
    const T* from = g + plane * p.oh * p.ow;
    T sum = 0;
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      const Span high = adaptive_window(r, p.oh, p.h);
      for (int64_t c = columns.begin; c < columns.end; ++c) {
        const Span wide = adaptive_window(c, p.ow, p.w);
        sum +=
            from[r * p.ow + c] / static_cast<T>((high.end - high.begin) * (wide.end - wide.begin));
      }
    }
    gx[at] = sum;
  }
}

tn_plan* make_adaptive(tn_device*, const Request& request) {
  const bool back = request.op() == "adaptive_avg_pool2d_backward";
  auto &in = request.input(0), &out = request.output(0);
  const Pool p(request, back ? out : in, back ? in : out, PoolWindows::none);
  require_contiguous(in);
  const int64_t n = sdk::numel(out);
  if (n == 0) return empty_plan();
  if (back && p.out_size() == 0) return zero_plan(out);  // no window reaches any pixel
  return with_float(in.dtype, [&]<class T>(T) {
    return make_plan([p, back, n](const tn_run& run) {
      auto* from = static_cast<const T*>(run.inputs[0]);
      auto* to = static_cast<T*>(run.outputs[0]);
      const auto& device = *run.stream->device;
      if (back)
        return launch(run.stream, stride_blocks(device, n), kBlock, adaptive_average_backward<T>, p,
                      from, to);
      const int64_t window = (ceil_div(p.h, p.oh) + 1) * (ceil_div(p.w, p.ow) + 1);
      const GroupShape shape{
          kBlock, window > 4096 ? kBlock : std::min(32u, power_of_two_from(ceil_div(window, 4)))};
      launch(run.stream, shape.grid(device, n), kBlock, adaptive_average<T>, p, from, to,
             shape.lanes);
    });
  });
}

const sdk::Kernel adaptive_avg_pool2d({"adaptive_avg_pool2d", "adaptive_avg_pool2d_backward"},
                                      make_adaptive);

}  // namespace
}  // namespace tenon::cuda
