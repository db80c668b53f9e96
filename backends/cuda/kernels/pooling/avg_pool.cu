// Average pooling. Gradients are gathered: each input pixel adds up its shares of the windows it
// lies in.
#include "kernels/pooling/pool.h"

namespace tenon::cuda {
namespace {

// The part of a window along one dimension that lies on the image, and what counts towards the
// average.
struct Extent {
  int64_t begin, end, counted;
  __device__ Extent(int64_t i, int64_t stride, int64_t kernel, int64_t padding, int64_t n,
                    bool count_pad) {
    begin = i * stride - padding;
    end = begin + kernel < n + padding ? begin + kernel : n + padding;
    counted = end - begin;
    begin = begin > 0 ? begin : 0;
    end = end < n ? end : n;
    if (!count_pad) counted = end > begin ? end - begin : 0;
  }
};

template <class T>
__global__ void __launch_bounds__(kBlock) average(Pool p, const T* x, T* y) {
  const int64_t n = p.planes * p.oh * p.ow;
  for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < n;
       at += int64_t{gridDim.x} * blockDim.x) {
    const auto [plane, row, column] = p.out_pixel(at);
    const Extent rows(row, p.sh, p.kh, p.ph, p.h, p.count_pad),
        columns(column, p.sw, p.kw, p.pw, p.w, p.count_pad);
    const T* from = x + plane * p.h * p.w;
    T sum = 0;
    for (int64_t i = rows.begin; i < rows.end; ++i)
#pragma unroll 4
      for (int64_t j = columns.begin; j < columns.end; ++j) sum += from[i * p.w + j];
    y[at] = sum * (T(1) / static_cast<T>(rows.counted * columns.counted));
  }
}

template <class T>
__global__ void __launch_bounds__(kBlock) average_backward(Pool p, const T* g, T* gx) {
  const int64_t n = p.planes * p.h * p.w;
  for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < n;
       at += int64_t{gridDim.x} * blockDim.x) {
    const auto [plane, row, column] = p.in_pixel(at);
    const Span rows = windows_over(row, p.ph, p.kh - 1, p.sh, p.oh),
               columns = windows_over(column, p.pw, p.kw - 1, p.sw, p.ow);
    const T* from = g + plane * p.oh * p.ow;
    T sum = 0;
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      const int64_t high = Extent(r, p.sh, p.kh, p.ph, p.h, p.count_pad).counted;
      for (int64_t c = columns.begin; c < columns.end; ++c) {
        const int64_t wide = Extent(c, p.sw, p.kw, p.pw, p.w, p.count_pad).counted;
        sum += from[r * p.ow + c] * (T(1) / static_cast<T>(high * wide));
      }
    }
    gx[at] = sum;
  }
}

tn_plan* make_average(tn_device*, const Request& request) {
  const bool back = request.op() == "avg_pool2d_backward";
  auto &in = request.input(0), &out = request.output(0);
  Pool p(request, back ? out : in, back ? in : out, PoolWindows::averaged);
  require_contiguous(in);
  const int64_t n = sdk::numel(out);
  if (n == 0) return empty_plan();
  return with_float(in.dtype, [&]<class T>(T) {
    return make_plan([p, back, n](const tn_run& run) {
      launch(run.stream, stride_blocks(*run.stream->device, n), kBlock,
             back ? average_backward<T> : average<T>, p, static_cast<const T*>(run.inputs[0]),
             static_cast<T*>(run.outputs[0]));
    });
  });
}

const sdk::Kernel avg_pool2d({"avg_pool2d", "avg_pool2d_backward"}, make_average);

}  // namespace
}  // namespace tenon::cuda
