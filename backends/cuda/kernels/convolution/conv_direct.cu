#include "device/block_reduce.h"
#include "device/convert.h"
#include "kernels/convolution/conv_direct.h"

namespace tenon::cuda {
namespace {

struct Conv : sdk::ConvRequest {
  Divider by_c, by_h, by_w, by_o, by_oh, by_ow, by_cg, by_kh, by_kw, by_sh, by_sw;

  explicit Conv(const sdk::ConvRequest& request);
};

// What sums are kept in.
template <class T>
using Accumulator = std::conditional_t<std::is_same_v<T, double>, double, float>;

// One thread computes each element of y. The zeros of the padding are multiplied as values of x
// are, here and for the gradient of the weight, so that a NaN of the other operand reaches the
// result, as on the cpu and in PyTorch.
template <class T>
__global__ void __launch_bounds__(kBlock)
    conv(Conv s, const T* x, const T* weight, const T* bias, T* y) {
  const int64_t count = s.n * s.o * s.oh * s.ow;
  for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < count;
       at += int64_t{gridDim.x} * blockDim.x) {
    int64_t n = at;
    const int64_t column = split(n, s.by_ow), row = split(n, s.by_oh), o = split(n, s.by_o),
                  group = divide(o, s.og);
    const T* from = x + (n * s.c + group * s.cg) * s.h * s.w;
    const T* w = weight + o * s.cg * s.kh * s.kw;
    Accumulator<T> sum = bias ? widen(bias[o]) : Accumulator<T>(0);
    for (int64_t c = 0; c < s.cg; ++c, from += s.h * s.w)
      for (int64_t i = 0; i < s.kh; ++i) {
        const int64_t in_row = row * s.sh - s.ph + i * s.dh;
        for (int64_t j = 0; j < s.kw; ++j, ++w) {
          const int64_t in_column = column * s.sw - s.pw + j * s.dw;
          const bool inside = in_row >= 0 && in_row < s.h && in_column >= 0 && in_column < s.w;
          const Accumulator<T> pixel =
              inside ? widen(from[in_row * s.w + in_column]) : Accumulator<T>(0);
          sum += pixel * widen(*w);
        }
      }
    y[at] = cast<T>(sum);
  }
}

// The output row or column whose tap `k` reads input element `i`; -1 where there is none.
__device__ inline int64_t output_of(int64_t i, int64_t padding, int64_t k, int64_t dilation,
                                    const Divider& by_stride, int64_t n) {
  int64_t from = i + padding - k * dilation;
  if (from < 0) return -1;
  const int64_t rest = split(from, by_stride);
  return rest == 0 && from < n ? from : -1;
}

// One thread computes each element of gx.
template <class T>
__global__ void __launch_bounds__(kBlock)
    conv_backward_input(Conv s, const T* g, const T* weight, T* gx) {
  const int64_t count = s.n * s.c * s.h * s.w;
  for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < count;
       at += int64_t{gridDim.x} * blockDim.x) {
    int64_t n = at;
    const int64_t column = split(n, s.by_w), row = split(n, s.by_h), channel = split(n, s.by_c);
    const int64_t group = divide(channel, s.cg), first = group * s.og, taps = s.kh * s.kw;
    const T* from = g + (n * s.o + first) * s.oh * s.ow;
    const T* w = weight + (first * s.cg + channel - group * s.cg) * taps;
    Accumulator<T> sum = 0;
    for (int64_t i = 0; i < s.kh; ++i) {
      const int64_t out_row = output_of(row, s.ph, i, s.dh, s.by_sh, s.oh);
      if (out_row < 0) continue;
      for (int64_t j = 0; j < s.kw; ++j) {
        const int64_t out_column = output_of(column, s.pw, j, s.dw, s.by_sw, s.ow);
        if (out_column < 0) continue;
        for (int64_t o = 0; o < s.og; ++o)
          sum += widen(from[(o * s.oh + out_row) * s.ow + out_column]) *
                 widen(w[o * s.cg * taps + i * s.kw + j]);
      }
    }
    gx[at] = cast<T>(sum);
  }
}

// A group of threads computes each element of gweight, in f64, because the sum runs over all pixels
// of all images.
template <class T>
__global__ void __launch_bounds__(kBlock)
    conv_backward_weight(Conv s, const T* g, const T* x, T* gweight, unsigned lanes) {
  __shared__ double shared[32];
  const Group threads = Group::of(lanes);
  const int64_t count = s.o * s.cg * s.kh * s.kw, pixels = s.n * s.oh * s.ow,
                turns = threads.turns(count);
  for (int64_t turn = 0; turn < turns; ++turn) {
    const int64_t at = turn * threads.count + threads.index;
    int64_t o = at < count ? at : count - 1;
    const int64_t j = split(o, s.by_kw), i = split(o, s.by_kh), c = split(o, s.by_cg),
                  channel = divide(o, s.og) * s.cg + c;
    double sum = 0;
    for (int64_t pixel = threads.lane; pixel < pixels; pixel += threads.lanes) {
      int64_t n = pixel;
      const int64_t column = split(n, s.by_ow), row = split(n, s.by_oh);
      const int64_t in_row = row * s.sh - s.ph + i * s.dh,
                    in_column = column * s.sw - s.pw + j * s.dw;
      const bool inside = in_row >= 0 && in_row < s.h && in_column >= 0 && in_column < s.w;
      const double input = inside ? static_cast<double>(widen(
                                        x[((n * s.c + channel) * s.h + in_row) * s.w + in_column]))
                                  : 0;
      sum += static_cast<double>(widen(g[((n * s.o + o) * s.oh + row) * s.ow + column])) * input;
    }
    sum = threads.reduce(sum, Add{}, shared);
    if (threads.lane == 0 && at < count) gweight[at] = cast<T>(sum);
  }
}

template <class T>
tn_plan* plan(const sdk::ConvRequest& request) {
  using Kind = sdk::ConvKind;
  const Conv s(request);
  const int64_t count = request.kind == Kind::forward          ? s.n * s.o * s.oh * s.ow
                        : request.kind == Kind::backward_input ? s.n * s.c * s.h * s.w
                                                               : s.o * s.cg * s.kh * s.kw;
  auto grid = [count](const tn_run& run, const GroupShape& shape) {
    return shape.grid(*run.stream->device, count);
  };
  const GroupShape single{kBlock, 1};
  auto in = [](const tn_run& run, int i) { return static_cast<const T*>(run.inputs[i]); };
  auto out = [](const tn_run& run) { return static_cast<T*>(run.outputs[0]); };
  if (request.kind == Kind::forward)
    return make_plan([=](const tn_run& run) {
      launch(run.stream, grid(run, single), kBlock, conv<T>, s, in(run, 0), in(run, 1), in(run, 2),
             out(run));
    });
  if (request.kind == Kind::backward_input)
    return make_plan([=](const tn_run& run) {
      launch(run.stream, grid(run, single), kBlock, conv_backward_input<T>, s, in(run, 0),
             in(run, 1), out(run));
    });
  const GroupShape shape{kBlock, s.n * s.oh * s.ow > 16384 ? kBlock : 32};
  return make_plan([=](const tn_run& run) {
    launch(run.stream, grid(run, shape), kBlock, conv_backward_weight<T>, s, in(run, 0), in(run, 1),
           out(run), shape.lanes);
  });
}

Conv::Conv(const sdk::ConvRequest& r) : sdk::ConvRequest(r) {
  by_c = divider_of(c), by_h = divider_of(h), by_w = divider_of(w);
  by_o = divider_of(o), by_oh = divider_of(oh), by_ow = divider_of(ow);
  by_cg = divider_of(cg), by_kh = divider_of(kh), by_kw = divider_of(kw);
  by_sh = divider_of(sh), by_sw = divider_of(sw);
}

}  // namespace

tn_plan* plan_conv_direct(const sdk::ConvRequest& request) {
  switch (request.dtype) {
    case TN_F64:
      return plan<double>(request);
    case TN_F16:
      return plan<Half>(request);
    case TN_BF16:
      return plan<BFloat>(request);
    default:
      return plan<float>(request);
  }
}

}  // namespace tenon::cuda
