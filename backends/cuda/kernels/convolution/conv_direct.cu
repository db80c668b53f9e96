#include "device/block_reduce.h"
#include "device/convert.h"
#include "kernels/convolution/conv_direct.h"

namespace tenon::cuda {
namespace {

struct Conv {
  int64_t n, c, h, w;              // input
  int64_t o, kh, kw;               // weight
  int64_t oh, ow;                  // output
  int64_t sh, sw, ph, pw, dh, dw;  // stride, padding, dilation
  int64_t groups, cg, og;          // channels of one group: in, out
  Divider by_c{}, by_h{}, by_w{}, by_o{}, by_oh{}, by_ow{}, by_cg{}, by_kh{}, by_kw{}, by_sh{},
      by_sw{};

  // Reads the attributes and checks that all fit together.
  static Conv from(const Request& request, const tn_tensor_desc& x, const tn_tensor_desc& weight,
                   const tn_tensor_desc& y);
};

// What sums are kept in.
template <class T>
using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;

// A thread an element of y.
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
    Sum<T> sum = bias ? widen(bias[o]) : Sum<T>(0);
    for (int64_t c = 0; c < s.cg; ++c, from += s.h * s.w)
      for (int64_t i = 0; i < s.kh; ++i) {
        const int64_t in_row = row * s.sh - s.ph + i * s.dh;
        for (int64_t j = 0; j < s.kw; ++j, ++w) {
          const int64_t in_column = column * s.sw - s.pw + j * s.dw;
          if (in_row >= 0 && in_row < s.h && in_column >= 0 && in_column < s.w)
            sum += widen(from[in_row * s.w + in_column]) * widen(*w);
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

// A thread an element of gx.
template <class T>
__global__ void __launch_bounds__(kBlock)
    conv_input_grad(Conv s, const T* g, const T* weight, T* gx) {
  const int64_t count = s.n * s.c * s.h * s.w;
  for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < count;
       at += int64_t{gridDim.x} * blockDim.x) {
    int64_t n = at;
    const int64_t column = split(n, s.by_w), row = split(n, s.by_h), channel = split(n, s.by_c);
    const int64_t group = divide(channel, s.cg), first = group * s.og, taps = s.kh * s.kw;
    const T* from = g + (n * s.o + first) * s.oh * s.ow;
    const T* w = weight + (first * s.cg + channel - group * s.cg) * taps;
    Sum<T> sum = 0;
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

// A group of threads an element of gweight, in f64: the sum runs over all pixels of all images.
template <class T>
__global__ void __launch_bounds__(kBlock)
    conv_weight_grad(Conv s, const T* g, const T* x, T* gweight, unsigned lanes) {
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
      if (in_row < 0 || in_row >= s.h || in_column < 0 || in_column >= s.w) continue;
      sum += static_cast<double>(widen(g[((n * s.o + o) * s.oh + row) * s.ow + column])) *
             static_cast<double>(widen(x[((n * s.c + channel) * s.h + in_row) * s.w + in_column]));
    }
    sum = threads.reduce(sum, Add{}, shared);
    if (threads.lane == 0 && at < count) gweight[at] = cast<T>(sum);
  }
}

template <class T>
tn_plan* plan(const Request& request, const Conv& s) {
  const int64_t count = sdk::numel(request.output(0));
  const auto op = request.op();
  auto grid = [count](const tn_run& run, const GroupShape& shape) {
    return shape.grid(*run.stream->device, count);
  };
  const GroupShape single{kBlock, 1};
  auto in = [](const tn_run& run, int i) { return static_cast<const T*>(run.inputs[i]); };
  auto out = [](const tn_run& run) { return static_cast<T*>(run.outputs[0]); };
  if (op == "conv2d")
    return make_plan([=](const tn_run& run) {
      launch(run.stream, grid(run, single), kBlock, conv<T>, s, in(run, 0), in(run, 1), in(run, 2),
             out(run));
    });
  if (op == "conv2d_input_grad")
    return make_plan([=](const tn_run& run) {
      launch(run.stream, grid(run, single), kBlock, conv_input_grad<T>, s, in(run, 0), in(run, 1),
             out(run));
    });
  const GroupShape shape{kBlock, s.n * s.oh * s.ow > 16384 ? kBlock : 32};
  return make_plan([=](const tn_run& run) {
    launch(run.stream, grid(run, shape), kBlock, conv_weight_grad<T>, s, in(run, 0), in(run, 1),
           out(run), shape.lanes);
  });
}

Conv Conv::from(const Request& request, const tn_tensor_desc& x, const tn_tensor_desc& weight,
                const tn_tensor_desc& y) {
  const auto found =
      "input " + shape_text(x) + ", weight " + shape_text(weight) + ", output " + shape_text(y);
  if (x.rank != 4 || weight.rank != 4 || y.rank != 4)
    invalid(request, "all tensors have 4 dimensions; found " + found);
  if (x.dtype != weight.dtype || x.dtype != y.dtype) invalid(request, "all tensors have one dtype");
  auto pair = [&](const char* name, int64_t least) {
    auto v = request.get_ints(name);
    if (v.size() != 2 || v[0] < least || v[1] < least || v[0] > INT32_MAX || v[1] > INT32_MAX)
      invalid(request,
              std::string(name) + " must be two integers of at least " + std::to_string(least));
    return v;
  };
  const auto stride = pair("stride", 1), padding = pair("padding", 0),
             dilation = pair("dilation", 1);
  Conv s{};
  s.n = x.shape[0], s.c = x.shape[1], s.h = x.shape[2], s.w = x.shape[3];
  s.o = weight.shape[0], s.cg = weight.shape[1], s.kh = weight.shape[2], s.kw = weight.shape[3];
  s.oh = y.shape[2], s.ow = y.shape[3];
  s.sh = stride[0], s.sw = stride[1], s.ph = padding[0], s.pw = padding[1], s.dh = dilation[0],
  s.dw = dilation[1];
  s.groups = request.get_int("groups");
  if (s.groups < 1 || s.o % s.groups || s.c != s.cg * s.groups)
    invalid(request,
            "channels do not divide into " + std::to_string(s.groups) + " groups; found " + found);
  s.og = s.o / s.groups;
  const int64_t room_h = s.h + 2 * s.ph - s.dh * (s.kh - 1) - 1,
                room_w = s.w + 2 * s.pw - s.dw * (s.kw - 1) - 1;
  if (s.kh < 1 || s.kw < 1 || room_h < 0 || room_w < 0 || y.shape[0] != s.n || y.shape[1] != s.o ||
      s.oh < 1 || s.ow < 1 || s.oh != room_h / s.sh + 1 || s.ow != room_w / s.sw + 1)
    invalid(request, "shapes do not fit together; found " + found);
  s.by_c = divider_of(s.c), s.by_h = divider_of(s.h), s.by_w = divider_of(s.w);
  s.by_o = divider_of(s.o), s.by_oh = divider_of(s.oh), s.by_ow = divider_of(s.ow);
  s.by_cg = divider_of(s.cg), s.by_kh = divider_of(s.kh), s.by_kw = divider_of(s.kw);
  s.by_sh = divider_of(s.sh), s.by_sw = divider_of(s.sw);
  return s;
}

}  // namespace

tn_plan* plan_conv_direct(const Request& request) {
  auto &first = request.input(0), &second = request.input(1), &out = request.output(0);
  const auto s = request.op() == "conv2d"              ? Conv::from(request, first, second, out)
                 : request.op() == "conv2d_input_grad" ? Conv::from(request, out, second, first)
                                                       : Conv::from(request, second, out, first);
  for (auto* d : {&first, &second, &out}) require_contiguous(request, *d);
  if (request.op() == "conv2d" && request.has_input(2)) {
    auto& bias = request.input(2);
    if (bias.rank != 1 || bias.shape[0] != s.o || bias.dtype != first.dtype)
      invalid(request, "bias must be (" + std::to_string(s.o) + ") of the input's dtype");
    require_contiguous(request, bias);
  }
  if (sdk::numel(out) == 0) return empty_plan();
  switch (first.dtype) {
    case TN_F32:
      return plan<float>(request, s);
    case TN_F64:
      return plan<double>(request, s);
    case TN_F16:
      return plan<Half>(request, s);
    case TN_BF16:
      return plan<BFloat>(request, s);
    default:
      refuse_dtype(request, first.dtype);
  }
}

}  // namespace tenon::cuda
