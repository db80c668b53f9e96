#include "kernels/pooling/pool.h"

namespace tenon::cuda {
namespace {

// The first element on the image at or after `at`, in steps of the dilation.
__device__ inline int64_t first_inside(int64_t at, int64_t dilation) {
  return at >= 0 ? at : at + divide(dilation - 1 - at, dilation) * dilation;
}

// A NaN always wins, the last of several. `indices` may be null.
template <class T>
__global__ void __launch_bounds__(kBlock) max_pool(Pool p, const T* x, T* y, int64_t* indices) {
  const int64_t n = p.planes * p.oh * p.ow;
  for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < n;
       at += int64_t{gridDim.x} * blockDim.x) {
    const auto [plane, row, column] = p.out_pixel(at);
    const int64_t above = row * p.sh - p.ph, before = column * p.sw - p.pw;
    const int64_t top = first_inside(above, p.dh), left = first_inside(before, p.dw);
    const int64_t bottom = above + (p.kh - 1) * p.dh + 1, right = before + (p.kw - 1) * p.dw + 1;
    const T* from = x + plane * p.h * p.w;
    T best = -kInfinity<T>;
    int64_t index = top * p.w + left;
    for (int64_t i = top; i < (bottom < p.h ? bottom : p.h); i += p.dh)
#pragma unroll 4
      for (int64_t j = left; j < (right < p.w ? right : p.w); j += p.dw) {
        const T v = from[i * p.w + j];
        const bool take = v > best || v != v;
        best = take ? v : best;
        index = take ? i * p.w + j : index;
      }
    y[at] = best;
    if (indices) indices[at] = index;
  }
}

// Each input pixel looks at the windows it lies in.
template <class T>
__global__ void __launch_bounds__(kBlock)
    max_pool_backward(Pool p, const T* g, const int64_t* indices, T* gx) {
  const int64_t n = p.planes * p.h * p.w;
  for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < n;
       at += int64_t{gridDim.x} * blockDim.x) {
    const auto [plane, row, column] = p.in_pixel(at);
    const Span rows = windows_over(row, p.ph, (p.kh - 1) * p.dh, p.sh, p.oh);
    const Span columns = windows_over(column, p.pw, (p.kw - 1) * p.dw, p.sw, p.ow);
    const int64_t base = plane * p.oh * p.ow, self = row * p.w + column;
    T sum = 0;
    for (int64_t r = rows.begin; r < rows.end; ++r)
#pragma unroll 2
      for (int64_t c = columns.begin; c < columns.end; ++c)
        if (indices[base + r * p.ow + c] == self) sum += g[base + r * p.ow + c];
    gx[at] = sum;
  }
}

tn_plan* make_max(tn_device*, const Request& request) {
  auto &x = request.input(0), &y = request.output(0);
  const Pool p(request, x, y, PoolWindows::dilated);
  require_contiguous(x);
  const bool indices = request.has_output(1);
  if (indices) sdk::require_indices(request.output(1), y);
  if (sdk::numel(y) == 0) return empty_plan();
  return with_float(x.dtype, [&]<class T>(T) {
    return make_plan([p, indices](const tn_run& run) {
      launch(run.stream, stride_blocks(*run.stream->device, p.planes * p.out_size()), kBlock,
             max_pool<T>, p, static_cast<const T*>(run.inputs[0]), static_cast<T*>(run.outputs[0]),
             indices ? static_cast<int64_t*>(run.outputs[1]) : nullptr);
    });
  });
}

tn_plan* make_max_backward(tn_device*, const Request& request) {
  auto &g = request.input(0), &indices = request.input(1), &gx = request.output(0);
  const Pool p(request, gx, g, PoolWindows::dilated);
  sdk::require_indices(indices, g);
  require_contiguous(g);
  require_contiguous(indices);
  if (sdk::numel(gx) == 0) return empty_plan();
  return with_float(g.dtype, [&]<class T>(T) {
    return make_plan([p](const tn_run& run) {
      launch(run.stream, stride_blocks(*run.stream->device, p.planes * p.in_size()), kBlock,
             max_pool_backward<T>, p, static_cast<const T*>(run.inputs[0]),
             static_cast<const int64_t*>(run.inputs[1]), static_cast<T*>(run.outputs[0]));
    });
  });
}

const sdk::Kernel max_pools({"max_pool2d"}, make_max);
const sdk::Kernel max_pool_gradients({"max_pool2d_backward"}, make_max_backward);

}  // namespace
}  // namespace tenon::cuda
