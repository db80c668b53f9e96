// Normalization of each channel of x (n, c, …) over all other dimensions. Statistics are reductions
// (reduce.h) into the workspace, one thread per channel turns them into what the elements need, and
// one more pass over memory applies it.
#include <algorithm>
#include <cmath>

#include <tenon/plugins/sdk/requests/normalization.h>

#include "device/moments.h"
#include "kernels/reduction/reduce.h"

namespace tenon::cuda {
namespace {

using BatchNorm = sdk::BatchNormRequest;

// A contiguous x by channel.
ReduceShape by_channel(const BatchNorm& s) {
  const tn_tensor_desc d{
      sizeof(tn_tensor_desc), TN_F32, 3, {s.n, s.c, s.size}, {s.c * s.size, s.size, 1}};
  return {d, {0, 2}};
}

// ---- The walk over elements

// What a channel's elements are computed with is read once and held in registers: a group of
// threads works on a part of one plane, or, where planes are one element, a thread goes down the
// rows of one pack of channels.

constexpr int64_t kPacksOfThread = 8;

struct Walk {
  int64_t size, part;  // elements of a plane, and of the part of it that a group does at a time
  int64_t parts, rows = 0;  // parts in all; rows of one-element planes
  Divider parts_of_plane, channels, across;
  unsigned lanes = 1, grid = 1;
  bool columns;

  static Walk of(const tn_device& device, const BatchNorm& s, int64_t pack) {
    Walk w{};
    w.size = s.size;
    w.columns = s.size == 1;
    w.channels = divider_of(s.c);
    if (w.columns) {
      const int64_t across = s.c / pack;
      w.across = divider_of(across);
      w.rows = s.n;
      w.grid = std::max(static_cast<unsigned>(ceil_div(across, kBlock)),
                        stride_blocks(device, ceil_div(s.n, kPacksOfThread) * across));
      return w;
    }
    w.lanes = std::min(kBlock, power_of_two_from(ceil_div(s.size, pack)));
    w.part = w.lanes * pack * kPacksOfThread;
    const int64_t of_plane = ceil_div(s.size, w.part);
    w.parts_of_plane = divider_of(of_plane);
    w.parts = s.n * s.c * of_plane;
    w.grid = stride_blocks(device, w.parts * w.lanes);
    return w;
  }
  static bool packs_fit(const BatchNorm& s, int64_t pack) {
    return (s.size == 1 ? s.c : s.size) % pack == 0;
  }
};

// Calls prepare(first channel, number of channels: 1 or V), then step(state, at) with what it gave
// for each pack of them.
template <int V, class Prepare, class Step>
__device__ void walk_channels(const Walk& w, Prepare&& prepare, Step&& step) {
  if (w.columns) {
    int64_t row = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    const int64_t at_once = divide(int64_t{gridDim.x} * blockDim.x, w.across.divisor),
                  column = split(row, w.across) * V;
    if (row >= at_once) return;
    const auto state = prepare(column, std::integral_constant<int, V>{});
    const int64_t width = int64_t{w.across.divisor} * V;
    for (; row < w.rows; row += at_once) step(state, row * width + column);
    return;
  }
  const unsigned in_block = blockDim.x / w.lanes, lane = threadIdx.x % w.lanes;
  for (int64_t i = int64_t{blockIdx.x} * in_block + threadIdx.x / w.lanes; i < w.parts;
       i += int64_t{gridDim.x} * in_block) {
    int64_t plane = i;
    const int64_t begin = split(plane, w.parts_of_plane) * w.part,
                  end = begin + w.part < w.size ? begin + w.part : w.size;
    int64_t channel = plane;
    channel = split(channel, w.channels);
    const auto state = prepare(channel, std::integral_constant<int, 1>{});
    for (int64_t at = begin + int64_t{lane} * V; at < end; at += int64_t{w.lanes} * V)
      step(state, plane * w.size + at);
  }
}

// ---- Forward

template <class T>
struct MomentsOfChannel : MomentsOf<T, T> {
  using Out = Moments;
  __device__ static Moments finish(const Moments& m, double) { return m; }
};

template <class T>
struct Statistics {
  const Moments* moments;  // null where the running statistics are what to normalize by
  const T *running_mean, *running_var;  // then these
  T *new_mean, *new_var;                // else these, null where there are none
  T *mean, *invstd;
  int64_t c;
  double eps, momentum;
};

template <class T>
__global__ void __launch_bounds__(kBlock) batch_norm_statistics(Statistics<T> s) {
  const int64_t c = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (c >= s.c) return;
  if (!s.moments) {
    s.mean[c] = s.running_mean[c];
    s.invstd[c] =
        T(1) / static_cast<T>(sqrt(static_cast<double>(s.running_var[c] + static_cast<T>(s.eps))));
    return;
  }
  const Moments m = s.moments[c];
  s.mean[c] = static_cast<T>(m.mean);
  s.invstd[c] = static_cast<T>(1 / sqrt(m.m2 / m.n + s.eps));
  if (s.new_mean)
    s.new_mean[c] =
        static_cast<T>((1 - s.momentum) * static_cast<double>(s.new_mean[c]) + s.momentum * m.mean);
  if (s.new_var)
    s.new_var[c] = static_cast<T>((1 - s.momentum) * static_cast<double>(s.new_var[c]) +
                                  s.momentum * m.m2 / (m.n > 2 ? m.n - 1 : 1.0));
}

// y = (x - mean) scale + bias, of N channels: not x scale + (bias - mean scale), which would lose
// what x and a large mean share.
template <class T, int N>
struct Applied {
  T mean[N], scale[N], bias[N];
};

template <class T, int V>
__global__ void __launch_bounds__(kBlock)
    batch_norm_apply(Walk walk, const T* x, const T* weight, const T* bias, const T* mean,
                     const T* invstd, T* y) {
  auto prepare = [&](int64_t first, auto count) {
    Applied<T, decltype(count)::value> a;
#pragma unroll
    for (int i = 0; i < decltype(count)::value; ++i) {
      const int64_t c = first + i;
      a.mean[i] = mean[c];
      a.scale[i] = weight ? invstd[c] * weight[c] : invstd[c];
      a.bias[i] = bias ? bias[c] : T(0);
    }
    return a;
  };
  walk_channels<V>(walk, prepare, [&]<int N>(const Applied<T, N>& a, int64_t at) {
    auto p = load_pack<V>(x + at);
#pragma unroll
    for (int i = 0; i < V; ++i)
      p.at[i] = (p.at[i] - a.mean[i % N]) * a.scale[i % N] + a.bias[i % N];
    store_pack<V>(y + at, p);
  });
}

template <class T>
tn_plan* plan_forward(const tn_device& device, const BatchNorm& s) {
  const ReductionWalk<MomentsOfChannel<T>> reduction(device, by_channel(s));
  const auto moments_bytes = static_cast<uint64_t>(s.c) * sizeof(Moments),
             own_bytes = static_cast<uint64_t>(2 * s.c) * sizeof(T);
  auto body = [=](const tn_run& run) {
    auto in = [&](int i) { return static_cast<const T*>(run.inputs[i]); };
    auto out = [&](int i) { return static_cast<T*>(run.outputs[i]); };
    auto* moments = static_cast<Moments*>(run.workspace);
    T* own = reinterpret_cast<T*>(moments + s.c);
    Statistics<T> statistics{s.training ? moments : nullptr,
                             in(3),
                             in(4),
                             out(3),
                             out(4),
                             out(1),
                             out(2),
                             s.c,
                             s.eps,
                             0};
    if (!statistics.mean) statistics.mean = own;
    if (!statistics.invstd) statistics.invstd = own + s.c;
    if (s.training) {
      statistics.momentum = run.scalars[0].f;
      reduction.run(run.stream, in(0), moments,
                    static_cast<char*>(run.workspace) + moments_bytes + own_bytes);
    }
    launch(run.stream, static_cast<unsigned>(ceil_div(s.c, kBlock)), kBlock,
           batch_norm_statistics<T>, statistics);
    const bool packs =
        Walk::packs_fit(s, kFullPack<T>) && aligned(in(0), 16) && aligned(out(0), 16);
    const auto walk = Walk::of(*run.stream->device, s, packs ? kFullPack<T> : 1);
    launch(run.stream, walk.grid, kBlock,
           packs ? batch_norm_apply<T, kFullPack<T>> : batch_norm_apply<T, 1>, walk, in(0), in(1),
           in(2), statistics.mean, statistics.invstd, out(0));
  };
  return make_plan(body,
                   moments_bytes + own_bytes + (s.training ? reduction.workspace_bytes() : 0));
}

// ---- Backward

// With h = (x - mean) invstd: gweight = sum of g h, gbias = sum of g, and in training
//   gx = w invstd (g - mean of g - h * mean of g h).

struct PairSums {
  double sum, product;
  __device__ PairSums shuffled(unsigned mask) const {
    return {shuffle_xor(sum, mask), shuffle_xor(product, mask)};
  }
};

// The sums of g, and of g (x - mean).
template <class T>
struct GradSums {
  using In = T;
  using Acc = PairSums;
  using Out = PairSums;
  static constexpr int kInputs = 2, kLoad = kFullPack<T>;
  __device__ static Acc init() { return {0, 0}; }
  template <int N>
  __device__ static void take(Acc& acc, const T* g, const T* x, T mean, int64_t, int64_t) {
#pragma unroll
    for (int k = 0; k < N; ++k) {
      acc.sum += static_cast<double>(g[k]);
      acc.product +=
          static_cast<double>(g[k]) * (static_cast<double>(x[k]) - static_cast<double>(mean));
    }
  }
  __device__ static Acc combine(const Acc& a, const Acc& b) {
    return {a.sum + b.sum, a.product + b.product};
  }
  __device__ static Out finish(const Acc& a, double) { return a; }
};

template <class T>
struct Coefficients {
  T shift, slope;  // what gx subtracts from g: shift + (x - mean) slope
};

template <class T>
__global__ void __launch_bounds__(kBlock)
    batch_norm_coefficients(const PairSums* sums, const T* invstd, int64_t channels, double share,
                            T* gweight, T* gbias, Coefficients<T>* result) {
  const int64_t c = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (c >= channels) return;
  const double product = sums[c].product * static_cast<double>(invstd[c]);
  if (gweight) gweight[c] = static_cast<T>(product);
  if (gbias) gbias[c] = static_cast<T>(sums[c].sum);
  result[c] = {static_cast<T>(sums[c].sum * share),
               static_cast<T>(product * share * static_cast<double>(invstd[c]))};
}

// gx = (g - shift - (x - mean) slope) scale, of N channels; without training shift and slope are
// nothing.
template <class T, int N>
struct AppliedBackward {
  T mean[N], scale[N], shift[N], slope[N];
};

template <class T, int V>
__global__ void __launch_bounds__(kBlock)
    batch_norm_backward_apply(Walk walk, const T* g, const T* x, const T* weight, const T* mean,
                              const T* invstd, const Coefficients<T>* coefficients, T* gx) {
  auto prepare = [&](int64_t first, auto count) {
    AppliedBackward<T, decltype(count)::value> a;
#pragma unroll
    for (int i = 0; i < decltype(count)::value; ++i) {
      const int64_t c = first + i;
      a.mean[i] = mean[c];
      a.scale[i] = weight ? invstd[c] * weight[c] : invstd[c];
      a.shift[i] = coefficients ? coefficients[c].shift : T(0);
      a.slope[i] = coefficients ? coefficients[c].slope : T(0);
    }
    return a;
  };
  walk_channels<V>(walk, prepare, [&]<int N>(const AppliedBackward<T, N>& a, int64_t at) {
    auto p = load_pack<V>(g + at);
    const auto q = coefficients ? load_pack<V>(x + at) : Pack<T, V>{};
#pragma unroll
    for (int i = 0; i < V; ++i) {
      T v = p.at[i];
      if (coefficients) v = v - a.shift[i % N] - (q.at[i] - a.mean[i % N]) * a.slope[i % N];
      p.at[i] = v * a.scale[i % N];
    }
    store_pack<V>(gx + at, p);
  });
}

template <class T>
tn_plan* plan_backward(const tn_device& device, const BatchNorm& s, bool sums_wanted) {
  const ReductionWalk<GradSums<T>> reduction(device, by_channel(s));
  const auto sums_bytes = static_cast<uint64_t>(s.c) * sizeof(PairSums);
  const auto coefficients_bytes =
      (static_cast<uint64_t>(s.c) * sizeof(Coefficients<T>) + 63) / 64 * 64;
  const bool sums = sums_wanted || s.training;
  auto body = [=](const tn_run& run) {
    auto in = [&](int i) { return static_cast<const T*>(run.inputs[i]); };
    auto out = [&](int i) { return static_cast<T*>(run.outputs[i]); };
    auto* found = static_cast<PairSums*>(run.workspace);
    auto* coefficients = reinterpret_cast<Coefficients<T>*>(found + s.c);
    if (sums) {
      reduction.run(run.stream, in(0), found,
                    static_cast<char*>(run.workspace) + sums_bytes + coefficients_bytes, in(1),
                    in(3));
      launch(run.stream, static_cast<unsigned>(ceil_div(s.c, kBlock)), kBlock,
             batch_norm_coefficients<T>, found, in(4), s.c, 1 / static_cast<double>(s.n * s.size),
             out(1), out(2), coefficients);
    }
    if (!out(0) || s.numel() == 0) return;
    const bool packs = Walk::packs_fit(s, kFullPack<T>) && aligned(in(0), 16) &&
                       aligned(in(1), 16) && aligned(out(0), 16);
    const auto walk = Walk::of(*run.stream->device, s, packs ? kFullPack<T> : 1);
    launch(run.stream, walk.grid, kBlock,
           packs ? batch_norm_backward_apply<T, kFullPack<T>> : batch_norm_backward_apply<T, 1>,
           walk, in(0), in(1), in(2), in(3), in(4), s.training ? coefficients : nullptr, out(0));
  };
  return make_plan(body, sums ? sums_bytes + coefficients_bytes + reduction.workspace_bytes() : 0);
}

// ---- Plans

// Without elements the statistics are 0.
template <class T>
tn_plan* plan_forward_of_nothing(const BatchNorm& s) {
  return make_plan([bytes = static_cast<size_t>(s.c) * sizeof(T)](const tn_run& run) {
    for (int i : {1, 2})
      if (run.outputs[i] && bytes)
        check(cudaMemsetAsync(run.outputs[i], 0, bytes, run.stream->handle), "cudaMemsetAsync");
  });
}

tn_plan* make_batch_norm(tn_device* device, const Request& request) {
  sdk::require_scalars(request, 1);
  const auto s = BatchNorm::from(request);
  return with_float(s.dtype, [&]<class T>(T) {
    return s.numel() ? plan_forward<T>(*device, s) : plan_forward_of_nothing<T>(s);
  });
}

tn_plan* make_batch_norm_backward(tn_device* device, const Request& request) {
  const auto s = BatchNorm::from(request);
  if (s.c == 0) return empty_plan();
  const bool sums = request.has_output(1) || request.has_output(2);
  return with_float(s.dtype, [&]<class T>(T) { return plan_backward<T>(*device, s, sums); });
}

const sdk::Kernel batch_norms({"batch_norm"}, make_batch_norm);
const sdk::Kernel batch_norm_gradients({"batch_norm_backward"}, make_batch_norm_backward);

}  // namespace
}  // namespace tenon::cuda
