// softmax and log_softmax along any dimension of a contiguous tensor, seen as outer x size x inner.
//
// Rows (inner = 1) that fit the registers of a block are read once; longer ones are read twice, the
// first time for the running maximum and sum (Milakov and Gimelshein 2018). Columns go side by
// side.
#include <tenon/plugins/sdk/requests/normalization.h>

#include "kernels/normalization/softmax.h"
#include "runtime/common.h"

namespace tenon::cuda {
namespace {

// ---- Rows

template <class T, class Tile>
__global__ void __launch_bounds__(kMaxThreads)
    softmax_rows(const T* x, T* y, int64_t rows, int64_t n, unsigned lanes, bool logarithm) {
  __shared__ T shared[32];
  const Group group = Group::of(lanes);
  const int64_t turns = group.turns(rows);
  for (int64_t turn = 0; turn < turns; ++turn) {
    int64_t row = turn * group.count + group.index;
    const bool writes = row < rows;
    if (!writes) row = rows - 1;
    Tile tile;
    tile.load(x + row * n, n, group, -kInfinity<T>);
    T top = tile.v[0], sum = 0;
#pragma unroll
    for (T v : tile.v) top = Larger{}(top, v);
    top = group.reduce(top, Larger{}, shared);
    // Places beyond the row's end hold -inf; they count only where everything is -inf, which makes
    // NaN of the row in any case.
#pragma unroll
    for (T& v : tile.v) {
      const T e = exp_of(v - top);
      sum += e;
      if (!logarithm) v = e;
    }
    sum = group.reduce(sum, Add{}, shared);
    const T log_sum = log_of(sum), scale = T(1) / sum;
#pragma unroll
    for (T& v : tile.v) v = logarithm ? v - top - log_sum : v * scale;
    if (writes) tile.store(y + row * n, n, group);
  }
}

template <class T>
__global__ void __launch_bounds__(kMaxThreads)
    softmax_long_rows(const T* x, T* y, int64_t rows, int64_t n, bool packs, bool logarithm) {
  __shared__ T shared[32];
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* from = x + row * n;
    T* to = y + row * n;
    LogSum<T> found;
    for_row_of<T>(packs, n, threadIdx.x, blockDim.x, [&](int64_t at, auto width) {
      found.take(load_pack<decltype(width)::value>(from + at).at);
    });
    found = group_log_sum(found, Group::of(blockDim.x), shared);
    const T log_sum = log_of(found.sum), scale = T(1) / found.sum;
    auto result = [&](T v) {
      return logarithm ? v - found.top - log_sum : exp_of(v - found.top) * scale;
    };
    for_row_of<T>(packs, n, threadIdx.x, blockDim.x, [&](int64_t at, auto width) {
      constexpr int V = decltype(width)::value;
      auto p = load_pack<V>(from + at);
#pragma unroll
      for (T& v : p.at) v = result(v);
      store_pack<V>(to + at, p);
    });
  }
}

template <class T, class Tile>
__global__ void __launch_bounds__(kMaxThreads)
    softmax_backward_rows(const T* g, const T* y, T* gx, int64_t rows, int64_t n, unsigned lanes,
                          bool logarithm) {
  __shared__ T shared[32];
  const Group group = Group::of(lanes);
  const int64_t turns = group.turns(rows);
  for (int64_t turn = 0; turn < turns; ++turn) {
    int64_t row = turn * group.count + group.index;
    const bool writes = row < rows;
    if (!writes) row = rows - 1;
    Tile gs, ys;
    gs.load(g + row * n, n, group, T(0));
    ys.load(y + row * n, n, group, T(0));
    T sum = 0;
#pragma unroll
    for (unsigned i = 0; i < Tile::kHeld; ++i) sum += logarithm ? gs.v[i] : gs.v[i] * ys.v[i];
    sum = group.reduce(sum, Add{}, shared);
#pragma unroll
    for (unsigned i = 0; i < Tile::kHeld; ++i)
      gs.v[i] = logarithm ? gs.v[i] - exp_of(ys.v[i]) * sum : (gs.v[i] - sum) * ys.v[i];
    if (writes) gs.store(gx + row * n, n, group);
  }
}

template <class T>
__global__ void __launch_bounds__(kMaxThreads)
    softmax_backward_long_rows(const T* g, const T* y, T* gx, int64_t rows, int64_t n, bool packs,
                               bool logarithm) {
  __shared__ T shared[32];
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T *gr = g + row * n, *yr = y + row * n;
    T* to = gx + row * n;
    T sum = 0;
    for_row_of<T>(packs, n, threadIdx.x, blockDim.x, [&](int64_t at, auto width) {
      constexpr int V = decltype(width)::value;
      const auto p = load_pack<V>(gr + at), q = load_pack<V>(yr + at);
#pragma unroll
      for (int i = 0; i < V; ++i) sum += logarithm ? p.at[i] : p.at[i] * q.at[i];
    });
    sum = block_reduce(sum, Add{}, shared);
    for_row_of<T>(packs, n, threadIdx.x, blockDim.x, [&](int64_t at, auto width) {
      constexpr int V = decltype(width)::value;
      auto p = load_pack<V>(gr + at), q = load_pack<V>(yr + at);
#pragma unroll
      for (int i = 0; i < V; ++i)
        p.at[i] = logarithm ? p.at[i] - exp_of(q.at[i]) * sum : (p.at[i] - sum) * q.at[i];
      store_pack<V>(to + at, p);
    });
  }
}

// ---- Columns

// `lanes` threads of a block side by side, the others take every so many-th element of the same
// columns. Columns are read twice, the second time from the cache where the block's share fits it.

struct SoftmaxColumns {
  int64_t outer, size, inner;
  unsigned lanes, grid;
  SoftmaxColumns(const tn_device& device, const Lines& s)
      : outer(s.outer), size(s.size), inner(s.inner) {
    const unsigned below = std::min(power_of_two_from(ceil_div(size, 16)),
                                    kBlock / std::min(32u, power_of_two_from(inner)));
    lanes = kBlock / below;
    grid = stride_blocks(device, outer * ceil_div(inner, lanes) * kBlock);
  }
};

// Calls f(offset of the thread's column, whether there is one, its place below the first, threads
// below each other).
template <class F>
__device__ void for_columns(const SoftmaxColumns& c, F&& f) {
  const unsigned across_lane = threadIdx.x % c.lanes, down = threadIdx.x / c.lanes,
                 below = blockDim.x / c.lanes;
  const int64_t across = (c.inner + c.lanes - 1) / c.lanes;
  for (int64_t task = blockIdx.x; task < c.outer * across; task += gridDim.x) {
    const int64_t o = divide(task, across), column = (task - o * across) * c.lanes + across_lane;
    f(o * c.size * c.inner + column, column < c.inner, int64_t{down}, int64_t{below});
  }
}

// Over the threads of one column.
template <class T, class Op>
__device__ T column_reduce(T value, Op op, unsigned lanes, T* shared) {
  __syncthreads();
  shared[threadIdx.x] = value;
  __syncthreads();
  T total = shared[threadIdx.x % lanes];
  for (unsigned at = threadIdx.x % lanes + lanes; at < blockDim.x; at += lanes)
    total = op(total, shared[at]);
  return total;
}

template <class T>
__global__ void __launch_bounds__(kBlock)
    softmax_columns(const T* x, T* y, SoftmaxColumns c, bool logarithm) {
  __shared__ T shared[kBlock];
  for_columns(c, [&](int64_t at, bool inside, int64_t down, int64_t below) {
    LogSum<T> found;
    if (inside)
      for (int64_t i = down; i < c.size; i += below) found.take(x[at + i * c.inner]);
    const T top = column_reduce(found.top, Larger{}, c.lanes, shared);
    const T sum = column_reduce(found.sum_below(top), Add{}, c.lanes, shared);
    const T log_sum = log_of(sum), scale = T(1) / sum;
    if (inside)
      for (int64_t i = down; i < c.size; i += below) {
        const T v = x[at + i * c.inner] - top;
        y[at + i * c.inner] = logarithm ? v - log_sum : exp_of(v) * scale;
      }
  });
}

template <class T>
__global__ void __launch_bounds__(kBlock)
    softmax_backward_columns(const T* g, const T* y, T* gx, SoftmaxColumns c, bool logarithm) {
  __shared__ T shared[kBlock];
  for_columns(c, [&](int64_t at, bool inside, int64_t down, int64_t below) {
    T sum = 0;
    if (inside)
      for (int64_t i = down; i < c.size; i += below) {
        const T v = g[at + i * c.inner];
        sum += logarithm ? v : v * y[at + i * c.inner];
      }
    sum = column_reduce(sum, Add{}, c.lanes, shared);
    if (inside)
      for (int64_t i = down; i < c.size; i += below) {
        const T v = g[at + i * c.inner], w = y[at + i * c.inner];
        gx[at + i * c.inner] = logarithm ? v - exp_of(w) * sum : (v - sum) * w;
      }
  });
}

// ---- Plans

template <class T>
void run_softmax(const tn_run& run, const Lines& s, const SoftmaxColumns& columns, bool logarithm) {
  auto* x = static_cast<const T*>(run.inputs[0]);
  auto* y = static_cast<T*>(run.outputs[0]);
  auto* stream = run.stream;
  if (s.inner > 1)
    return launch(stream, columns.grid, kBlock, softmax_columns<T>, x, y, columns, logarithm);
  const bool packs = s.size % kFullPack<T> == 0 && aligned(x, 16) && aligned(y, 16);
  with_row_tile<T>(s.size, packs, [&](auto tile, GroupShape shape) {
    const unsigned grid = shape.grid(*stream->device, s.outer);
    if constexpr (std::is_null_pointer_v<decltype(tile)>)
      launch(stream, grid, shape.block, softmax_long_rows<T>, x, y, s.outer, s.size, packs,
             logarithm);
    else
      launch(stream, grid, shape.block, softmax_rows<T, decltype(tile)>, x, y, s.outer, s.size,
             shape.lanes, logarithm);
  });
}

template <class T>
void run_backward(const tn_run& run, const Lines& s, const SoftmaxColumns& columns,
                  bool logarithm) {
  auto *g = static_cast<const T*>(run.inputs[0]), *y = static_cast<const T*>(run.inputs[1]);
  auto* gx = static_cast<T*>(run.outputs[0]);
  auto* stream = run.stream;
  if (s.inner > 1)
    return launch(stream, columns.grid, kBlock, softmax_backward_columns<T>, g, y, gx, columns,
                  logarithm);
  const bool packs =
      s.size % kFullPack<T> == 0 && aligned(g, 16) && aligned(y, 16) && aligned(gx, 16);
  with_row_tile<T>(s.size, packs, [&](auto tile, GroupShape shape) {
    const unsigned grid = shape.grid(*stream->device, s.outer);
    if constexpr (std::is_null_pointer_v<decltype(tile)>)
      launch(stream, grid, shape.block, softmax_backward_long_rows<T>, g, y, gx, s.outer, s.size,
             packs, logarithm);
    else
      launch(stream, grid, shape.block, softmax_backward_rows<T, decltype(tile)>, g, y, gx, s.outer,
             s.size, shape.lanes, logarithm);
  });
}

tn_plan* make_softmax(tn_device* device, const Request& request) {
  const auto s = sdk::SoftmaxRequest::from(request);
  if (s.outer * s.size * s.inner == 0) return empty_plan();
  return with_float(s.dtype, [&]<class T>(T) {
    const SoftmaxColumns columns(*device, s);
    return make_plan([=](const tn_run& run) {
      s.backward ? run_backward<T>(run, s, columns, s.logarithm)
                 : run_softmax<T>(run, s, columns, s.logarithm);
    });
  });
}

const sdk::Kernel softmaxes({"softmax", "log_softmax", "softmax_backward", "log_softmax_backward"},
                            make_softmax);

}  // namespace
}  // namespace tenon::cuda
