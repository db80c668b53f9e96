// The kernels under every reduction. A reducer says what a value is and how two values are
// combined. This file decides how: if the reduced dimension is contiguous, groups of threads fold
// rows, and if a kept one is, threads side by side go down columns. If there are too few outputs to
// fill the device, each is cut into parts, which a second kernel combines in order.
//
// A reducer R has
//   In, Acc, Out    types of an element, an accumulator and a result; Acc shuffles
//                   (`shuffled(mask)`) unless it is a number
//   kInputs         2 where it folds pairs of x and a second tensor of x's layout
//   kLoad           elements of one load where they lie well: a pack, or 1 for what is rare and not
//                   worth twice the kernels
//   init()          the accumulator of no elements
//   take<N>(acc, x, x2, shift, index, step)
//                   folds in x[k] (and x2[k]), k < N, elements index + k * step of the reduced
//                   ones; `shift` is the output's number of `shifts`, and where there are none one
//                   number for all
//   Local, settle(local)
//                   where one thread gathers into something else than Acc: what `take` folds into,
//                   and the Acc that it amounts to
//   combine(a, b)   the accumulator of both
//   finish(acc, parameter)
//                   the result
#pragma once

#include "device/block_reduce.h"
#include "kernels/reduction/gather.h"
#include "kernels/reduction/reduce_plan.h"
#include "runtime/common.h"

namespace tenon::cuda {

template <class R>
struct ReduceOperands {
  const typename R::In *x, *x2, *shifts;
  typename R::Out* y;
  typename R::Acc* partial;
  typename R::In shift;  // where there are no `shifts`
};

// Elements [begin, end) of a row in packs of V, by `lanes` threads.
template <class R, int V>
__device__ void fold_row(const ReduceShape& s, typename LocalOf<R>::type& acc,
                         const typename R::In* x, const typename R::In* x2, typename R::In shift,
                         int64_t begin, int64_t end, unsigned lane, unsigned lanes) {
  using In = typename R::In;
  constexpr int kAhead = 4;
  const int64_t step = int64_t{lanes} * V;
  int64_t i = begin + int64_t{lane} * V;
  for (; i + (kAhead - 1) * step + V <= end; i += kAhead * step) {
    Pack<In, V> a[kAhead], b[kAhead];
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const int64_t at = s.offset(i + u * step);
      a[u] = load_pack<V>(x + at);
      if constexpr (R::kInputs == 2) b[u] = load_pack<V>(x2 + at);
    }
    const auto* second = R::kInputs == 2 ? b : a;
    if constexpr (V == 1) {
      R::template take<kAhead>(acc, a[0].at, second[0].at, shift, i, step);
    } else {
#pragma unroll
      for (int u = 0; u < kAhead; ++u)
        R::template take<V>(acc, a[u].at, second[u].at, shift, i + u * step, 1);
    }
  }
  for (; i + V <= end; i += step) {
    const int64_t at = s.offset(i);
    Pack<In, V> a = load_pack<V>(x + at), b{};
    if constexpr (R::kInputs == 2) b = load_pack<V>(x2 + at);
    R::template take<V>(acc, a.at, b.at, shift, i, 1);
  }
  if constexpr (V > 1)
    for (i = end - (end - begin) % V + lane; i < end; i += lanes) {
      const int64_t at = s.offset(i);
      R::template take<1>(acc, x + at, R::kInputs == 2 ? x2 + at : x, shift, i, 1);
    }
}

template <class R, int V>
__global__ void __launch_bounds__(kBlock) reduce_rows(ReduceArgs a, ReduceOperands<R> o) {
  __shared__ typename R::Acc shared[32];
  const Group group = Group::of(a.lanes);
  const int64_t tasks = a.outputs * a.splits, turns = group.turns(tasks);
  for (int64_t turn = 0; turn < turns; ++turn) {
    const int64_t task = turn * group.count + group.index;
    const int64_t split = task < tasks ? divide(task, a.outputs) : 0,
                  output = task < tasks ? task - split * a.outputs : 0;
    const auto place = a.locate(output, a.kept_rank);
    auto local = LocalOf<R>::init();
    const int64_t begin = split * a.chunk,
                  end = begin + a.chunk < a.count ? begin + a.chunk : a.count;
    const typename R::In shift = o.shifts ? o.shifts[place.y] : o.shift;
    if (task < tasks)
      fold_row<R, V>(a, local, o.x + place.x, o.x2 + place.x, shift, begin, end, group.lane,
                     group.lanes);
    const auto acc = group.reduce(LocalOf<R>::settle(local), Combine<R>{}, shared);
    if (group.lane != 0 || task >= tasks) continue;
    if (a.splits == 1)
      o.y[place.y] = R::finish(acc, a.parameter);
    else
      o.partial[task] = acc;
  }
}

// A block is `lanes` threads side by side, V columns each, and the others below them.
template <class R, int V>
__global__ void __launch_bounds__(kBlock) reduce_columns(ReduceArgs a, ReduceOperands<R> o) {
  using In = typename R::In;
  constexpr int kAhead = 4;
  __shared__ typename R::Acc shared[kBlock];
  const auto& last = a.kept[a.kept_rank - 1];
  const unsigned below = blockDim.x / a.lanes, across_lane = threadIdx.x % a.lanes,
                 down = threadIdx.x / a.lanes;
  const int64_t across = (last.size + a.lanes * V - 1) / (a.lanes * V),
                blocks = a.outputs / last.size * across;
  for (int64_t task = blockIdx.x; task < blocks * a.splits; task += gridDim.x) {
    const int64_t split = divide(task, blocks), rest = task - split * blocks,
                  outer = divide(rest, across);
    const int64_t column = ((rest - outer * across) * a.lanes + across_lane) * V;
    const bool inside = column < last.size;
    const auto place = a.locate(outer, a.kept_rank - 1);
    const int64_t begin = split * a.chunk,
                  end = begin + a.chunk < a.count ? begin + a.chunk : a.count;
    typename LocalOf<R>::type acc[V];
    In shift[V];
#pragma unroll
    for (int v = 0; v < V; ++v) {
      acc[v] = LocalOf<R>::init();
      shift[v] = o.shifts && inside ? o.shifts[place.y + (column + v) * last.y_stride] : o.shift;
    }
    const In *x = o.x + place.x + column, *x2 = o.x2 + place.x + column;
    int64_t i = inside ? begin + down : end;
    for (; i + (kAhead - 1) * below < end; i += kAhead * below) {
      Pack<In, V> p[kAhead], q[kAhead];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        const int64_t at = a.offset(i + u * below);
        p[u] = load_pack<V>(x + at);
        if constexpr (R::kInputs == 2) q[u] = load_pack<V>(x2 + at);
      }
#pragma unroll
      for (int v = 0; v < V; ++v) {
        In b[kAhead], c[kAhead];
#pragma unroll
        for (int u = 0; u < kAhead; ++u)
          b[u] = p[u].at[v], c[u] = R::kInputs == 2 ? q[u].at[v] : In(0);
        R::template take<kAhead>(acc[v], b, c, shift[v], i, below);
      }
    }
    for (; i < end; i += below) {
      const int64_t at = a.offset(i);
      Pack<In, V> p = load_pack<V>(x + at), q{};
      if constexpr (R::kInputs == 2) q = load_pack<V>(x2 + at);
#pragma unroll
      for (int v = 0; v < V; ++v) R::template take<1>(acc[v], p.at + v, q.at + v, shift[v], i, 1);
    }
#pragma unroll
    for (int v = 0; v < V; ++v) {
      __syncthreads();
      shared[threadIdx.x] = LocalOf<R>::settle(acc[v]);
      __syncthreads();
      for (unsigned half = below / 2; half > 0; half /= 2) {
        if (down < half)
          shared[threadIdx.x] =
              R::combine(shared[threadIdx.x], shared[threadIdx.x + half * a.lanes]);
        __syncthreads();
      }
      if (down != 0 || !inside) continue;
      if (a.splits == 1)
        o.y[place.y + (column + v) * last.y_stride] = R::finish(shared[threadIdx.x], a.parameter);
      else
        o.partial[split * a.outputs + outer * last.size + column + v] = shared[threadIdx.x];
    }
  }
}

// partial[split][output], outputs in the order of the kept dimensions by stride.
template <class R>
__global__ void __launch_bounds__(kBlock) reduce_partials(ReduceArgs a, ReduceOperands<R> o) {
  __shared__ typename R::Acc shared[32];
  const Group group = Group::of(a.finish_lanes);
  const int64_t turns = group.turns(a.outputs);
  for (int64_t turn = 0; turn < turns; ++turn) {
    const int64_t output = turn * group.count + group.index;
    auto acc = R::init();
    if (output < a.outputs)
      for (int64_t s = group.lane; s < a.splits; s += group.lanes)
        acc = R::combine(acc, o.partial[s * a.outputs + output]);
    acc = group.reduce(acc, Combine<R>{}, shared);
    if (group.lane == 0 && output < a.outputs)
      o.y[a.locate(output, a.kept_rank).y] = R::finish(acc, a.parameter);
  }
}

// Prepared for one shape and device.
template <class R>
class ReductionWalk {
 public:
  using In = typename R::In;
  ReductionWalk(const tn_device& device, const ReduceShape& shape, double parameter = 0)
      : a_(plan_reduction(device, shape, R::kLoad, parameter)) {}

  uint64_t workspace_bytes() const {
    return a_.splits == 1 ? 0
                          : static_cast<uint64_t>(a_.splits * a_.outputs) * sizeof(typename R::Acc);
  }

  void run(tn_stream* stream, const void* x, void* y, void* workspace, const void* x2 = nullptr,
           const void* shifts = nullptr, In shift = In(0)) const {
    if (!x2) x2 = x;
    const ReduceOperands<R> o{static_cast<const In*>(x),
                              static_cast<const In*>(x2),
                              static_cast<const In*>(shifts),
                              static_cast<typename R::Out*>(y),
                              static_cast<typename R::Acc*>(workspace),
                              shift};
    const bool packs = a_.packs && aligned(x, 16) && aligned(x2, 16);
    if (a_.columns)
      launch(stream, columns_grid(packs), a_.block,
             packs ? reduce_columns<R, R::kLoad> : reduce_columns<R, 1>, a_, o);
    else
      launch(stream, a_.grid, a_.block, packs ? reduce_rows<R, R::kLoad> : reduce_rows<R, 1>, a_,
             o);
    if (a_.splits > 1) launch(stream, a_.finish_grid, kBlock, reduce_partials<R>, a_, o);
  }

 private:
  unsigned columns_grid(bool packs) const {
    const int64_t size = a_.kept[a_.kept_rank - 1].size,
                  wide = int64_t{a_.lanes} * (packs ? R::kLoad : 1);
    return static_cast<unsigned>(
        std::min<int64_t>(a_.outputs / size * ceil_div(size, wide) * a_.splits, 1 << 20));
  }
  ReduceArgs a_;
};

// The plan of a reduction of input 0 to output 0.
template <class R>
tn_plan* reduction_plan(const ReductionWalk<R>& reduction) {
  return make_plan(
      [reduction](const tn_run& run) {
        reduction.run(run.stream, run.inputs[0], run.outputs[0], run.workspace);
      },
      reduction.workspace_bytes());
}

// And of one over the attribute "dims", to a contiguous output.
template <class R>
tn_plan* reduction_plan(const tn_device& device, const Request& request, double parameter = 1) {
  auto &x = request.input(0), &y = request.output(0);
  require_contiguous(y);
  if (sdk::dtype_size(y.dtype) != sizeof(typename R::Out)) refuse_dtype(y.dtype);
  if (sdk::numel(y) == 0) return empty_plan();
  return reduction_plan(
      ReductionWalk<R>(device, ReduceShape(x, sdk::reduced_dims(request)), parameter));
}

}  // namespace tenon::cuda
