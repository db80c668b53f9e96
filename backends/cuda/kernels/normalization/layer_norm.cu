// Normalization over the last dimensions: rows of `size` elements, held in registers where they
// fit.
#include <cmath>

#include <tenon/plugins/sdk/requests/normalization.h>

#include "device/block_reduce.h"
#include "runtime/common.h"

namespace tenon::cuda {
namespace {

using LayerNorm = sdk::LayerNormRequest;

__device__ inline float root(float x) { return sqrtf(x); }
__device__ inline double root(double x) { return sqrt(x); }

// ---- Forward

template <class T>
struct Forward {
  const T *x, *weight, *bias;  // weight and bias may be null, mean and invstd too
  T *y, *mean, *invstd;
  int64_t rows, size;
  T eps;

  template <int V>
  __device__ Pack<T, V> result(Pack<T, V> p, int64_t at, T m, T scale) const {
    const auto w = weight ? load_pack<V>(weight + at) : Pack<T, V>{},
               b = bias ? load_pack<V>(bias + at) : Pack<T, V>{};
#pragma unroll
    for (int i = 0; i < V; ++i) {
      T v = (p.at[i] - m) * scale;
      if (weight) v *= w.at[i];
      if (bias) v += b.at[i];
      p.at[i] = v;
    }
    return p;
  }
  __device__ void keep(int64_t row, T m, T scale) const {
    if (mean) mean[row] = m;
    if (invstd) invstd[row] = scale;
  }
};

template <class T, class Tile>
__global__ void __launch_bounds__(kMaxThreads) layer_norm_rows(Forward<T> f, unsigned lanes) {
  constexpr int V = Tile::kWidth;
  __shared__ T shared[32];
  const Group group = Group::of(lanes);
  const int64_t turns = group.turns(f.rows);
  for (int64_t turn = 0; turn < turns; ++turn) {
    const int64_t at_turn = turn * group.count + group.index,
                  row = at_turn < f.rows ? at_turn : f.rows - 1;
    Tile tile;
    tile.load(f.x + row * f.size, f.size, group, T(0));
    T sum = 0, squares = 0;
#pragma unroll
    for (T v : tile.v) sum += v;
    const T mean = group.reduce(sum, Add{}, shared) / static_cast<T>(f.size);
    Tile::for_packs(f.size, group, [&](int i, int64_t) {
#pragma unroll
      for (int j = 0; j < V; ++j) squares += (tile.v[i + j] - mean) * (tile.v[i + j] - mean);
    });
    const T invstd =
        T(1) / root(group.reduce(squares, Add{}, shared) / static_cast<T>(f.size) + f.eps);
    if (at_turn >= f.rows) continue;
    if (group.lane == 0) f.keep(row, mean, invstd);
    Tile::for_packs(f.size, group, [&](int i, int64_t at) {
      Pack<T, V> p;
#pragma unroll
      for (int j = 0; j < V; ++j) p.at[j] = tile.v[i + j];
      store_pack<V>(f.y + row * f.size + at, f.result(p, at, mean, invstd));
    });
  }
}

template <class T>
__global__ void __launch_bounds__(kMaxThreads) layer_norm_long_rows(Forward<T> f, bool packs) {
  __shared__ T shared[32];
  for (int64_t row = blockIdx.x; row < f.rows; row += gridDim.x) {
    const T* x = f.x + row * f.size;
    T sum = 0, squares = 0;
    for_row_of<T>(packs, f.size, threadIdx.x, blockDim.x, [&](int64_t at, auto width) {
      const auto p = load_pack<decltype(width)::value>(x + at);
#pragma unroll
      for (T v : p.at) sum += v;
    });
    const T mean = block_reduce(sum, Add{}, shared) / static_cast<T>(f.size);
    for_row_of<T>(packs, f.size, threadIdx.x, blockDim.x, [&](int64_t at, auto width) {
      const auto p = load_pack<decltype(width)::value>(x + at);
#pragma unroll
      for (T v : p.at) squares += (v - mean) * (v - mean);
    });
    const T invstd =
        T(1) / root(block_reduce(squares, Add{}, shared) / static_cast<T>(f.size) + f.eps);
    if (threadIdx.x == 0) f.keep(row, mean, invstd);
    for_row_of<T>(packs, f.size, threadIdx.x, blockDim.x, [&](int64_t at, auto width) {
      constexpr int V = decltype(width)::value;
      store_pack<V>(f.y + row * f.size + at, f.result(load_pack<V>(x + at), at, mean, invstd));
    });
  }
}

// ---- Backward

// With h = (x - mean) invstd: gx = invstd (g w - mean of g w - h * mean of g w h).

template <class T>
struct LayerNormBackward {
  const T *g, *x, *weight, *mean, *invstd;  // weight may be null
  T* gx;
  int64_t rows, size;
};

template <class T, class Tile>
__global__ void __launch_bounds__(kMaxThreads)
    layer_norm_backward_rows(LayerNormBackward<T> b, unsigned lanes) {
  constexpr int V = Tile::kWidth;
  __shared__ T shared[32];
  const Group group = Group::of(lanes);
  const int64_t turns = group.turns(b.rows);
  for (int64_t turn = 0; turn < turns; ++turn) {
    const int64_t at_turn = turn * group.count + group.index,
                  row = at_turn < b.rows ? at_turn : b.rows - 1;
    const T mean = b.mean[row], invstd = b.invstd[row], scale = T(1) / static_cast<T>(b.size);
    Tile g, h;
    g.load(b.g + row * b.size, b.size, group, T(0));
    h.load(b.x + row * b.size, b.size, group, T(0));
    T sum = 0, product = 0;
    Tile::for_packs(b.size, group, [&](int i, int64_t at) {
      const auto w = b.weight ? load_pack<V>(b.weight + at) : Pack<T, V>{};
#pragma unroll
      for (int j = 0; j < V; ++j) {
        if (b.weight) g.v[i + j] *= w.at[j];
        h.v[i + j] = (h.v[i + j] - mean) * invstd;
        sum += g.v[i + j];
        product += g.v[i + j] * h.v[i + j];
      }
    });
    sum = group.reduce(sum, Add{}, shared) * scale;
    product = group.reduce(product, Add{}, shared) * scale;
#pragma unroll
    for (int i = 0; i < Tile::kHeld; ++i) g.v[i] = (g.v[i] - sum - h.v[i] * product) * invstd;
    if (at_turn < b.rows) g.store(b.gx + row * b.size, b.size, group);
  }
}

template <class T>
__global__ void __launch_bounds__(kMaxThreads)
    layer_norm_backward_long_rows(LayerNormBackward<T> b) {
  __shared__ T shared[32];
  for (int64_t row = blockIdx.x; row < b.rows; row += gridDim.x) {
    const T *g = b.g + row * b.size, *x = b.x + row * b.size;
    const T mean = b.mean[row], invstd = b.invstd[row], scale = T(1) / static_cast<T>(b.size);
    T sum = 0, product = 0;
    for (int64_t i = threadIdx.x; i < b.size; i += blockDim.x) {
      const T k = b.weight ? g[i] * b.weight[i] : g[i];
      sum += k;
      product += k * ((x[i] - mean) * invstd);
    }
    sum = block_reduce(sum, Add{}, shared) * scale;
    product = block_reduce(product, Add{}, shared) * scale;
    for (int64_t i = threadIdx.x; i < b.size; i += blockDim.x) {
      const T k = b.weight ? g[i] * b.weight[i] : g[i];
      b.gx[row * b.size + i] = (k - sum - (x[i] - mean) * invstd * product) * invstd;
    }
  }
}

// gweight = sum over rows of g h and gbias = sum of g: columns side by side, the rows in `splits`
// parts of `chunk`. Both sums of each part go to partial[split][2][size].
struct AffineColumns {
  int64_t rows, size, chunk, splits, across;
  AffineColumns(const tn_device& device, const LayerNorm& s) : rows(s.rows), size(s.size) {
    constexpr int64_t kRows = kBlock / 32;  // of a block at a time
    across = ceil_div(size, 32);
    const int64_t wanted =
        ceil_div(int64_t{device.multiprocessors} * 8, std::max<int64_t>(1, across));
    splits = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, rows / (kRows * 8)));
    chunk = std::max<int64_t>(1, ceil_div(rows, splits));
    splits = std::max<int64_t>(1, ceil_div(rows, chunk));
  }
  template <class T>
  uint64_t workspace_bytes() const {
    return static_cast<uint64_t>(splits * 2 * size) * sizeof(T);
  }
};

template <class T>
__global__ void __launch_bounds__(kBlock)
    parameter_sums(LayerNormBackward<T> b, AffineColumns c, T* partial) {
  __shared__ T shared[2][kBlock];
  const unsigned below = blockDim.x / 32, down = threadIdx.x / 32;
  for (int64_t task = blockIdx.x; task < c.across * c.splits; task += gridDim.x) {
    const int64_t part = divide(task, c.across),
                  column = (task - part * c.across) * 32 + threadIdx.x % 32;
    const int64_t end = (part + 1) * c.chunk < c.rows ? (part + 1) * c.chunk : c.rows;
    T product = 0, sum = 0;
    if (column < c.size) {
#pragma unroll 4
      for (int64_t row = part * c.chunk + down; row < end; row += below) {
        const T g = b.g[row * c.size + column],
                h = (b.x[row * c.size + column] - b.mean[row]) * b.invstd[row];
        product += g * h;
        sum += g;
      }
    }
    __syncthreads();
    shared[0][threadIdx.x] = product;
    shared[1][threadIdx.x] = sum;
    __syncthreads();
    if (down < 2 && column < c.size) {
      T total = 0;
      for (unsigned k = 0; k < below; ++k) total += shared[down][k * 32 + threadIdx.x % 32];
      partial[(part * 2 + down) * c.size + column] = total;
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kBlock)
    parameter_backward(AffineColumns c, const T* partial, T* gweight, T* gbias, unsigned lanes) {
  const Group group = Group::of(lanes);
  const int64_t turns = group.turns(2 * c.size);
  for (int64_t turn = 0; turn < turns; ++turn) {
    const int64_t at = turn * group.count + group.index;
    double sum = 0;
    if (at < 2 * c.size)
      for (int64_t k = group.lane; k < c.splits; k += group.lanes)
        sum += static_cast<double>(partial[k * 2 * c.size + at]);
    sum = warp_reduce(sum, Add{}, lanes);
    if (at >= 2 * c.size || group.lane != 0) continue;
    T* to = at < c.size ? gweight : gbias;
    if (to) to[at < c.size ? at : at - c.size] = static_cast<T>(sum);
  }
}

// ---- Plans

template <class T>
void run_forward(const tn_run& run, const LayerNorm& s) {
  auto in = [&](int i) { return static_cast<const T*>(run.inputs[i]); };
  auto out = [&](int i) { return static_cast<T*>(run.outputs[i]); };
  const Forward<T> f{
      in(0),  s.weight ? in(1) : nullptr, s.bias ? in(2) : nullptr, out(0), out(1), out(2), s.rows,
      s.size, static_cast<T>(s.eps)};
  const bool packs = s.size % kFullPack<T> == 0 && aligned(f.x, 16) && aligned(f.y, 16) &&
                     aligned(f.weight, 16) && aligned(f.bias, 16);
  with_row_tile<T>(s.size, packs, [&](auto tile, GroupShape shape) {
    const unsigned grid = shape.grid(*run.stream->device, s.rows);
    if constexpr (std::is_null_pointer_v<decltype(tile)>)
      launch(run.stream, grid, shape.block, layer_norm_long_rows<T>, f, packs);
    else
      launch(run.stream, grid, shape.block, layer_norm_rows<T, decltype(tile)>, f, shape.lanes);
  });
}

template <class T>
void run_backward(const tn_run& run, const LayerNorm& s, const AffineColumns& columns) {
  auto in = [&](int i) { return static_cast<const T*>(run.inputs[i]); };
  auto *gweight = static_cast<T*>(run.outputs[1]), *gbias = static_cast<T*>(run.outputs[2]);
  const LayerNormBackward<T> b{in(0),  in(1), in(2), in(3), in(4), static_cast<T*>(run.outputs[0]),
                               s.rows, s.size};
  if (b.gx && s.rows > 0) {
    const bool packs = s.size % kFullPack<T> == 0 && aligned(b.g, 16) && aligned(b.x, 16) &&
                       aligned(b.gx, 16) && aligned(b.weight, 16);
    with_row_tile<T>(s.size, packs, [&](auto tile, GroupShape shape) {
      const unsigned grid = shape.grid(*run.stream->device, s.rows);
      if constexpr (std::is_null_pointer_v<decltype(tile)>)
        launch(run.stream, grid, shape.block, layer_norm_backward_long_rows<T>, b);
      else
        launch(run.stream, grid, shape.block, layer_norm_backward_rows<T, decltype(tile)>, b,
               shape.lanes);
    });
  }
  if (!gweight && !gbias) return;
  auto* partial = static_cast<T*>(run.workspace);
  launch(run.stream,
         static_cast<unsigned>(std::min<int64_t>(columns.across * columns.splits, 1 << 20)), kBlock,
         parameter_sums<T>, b, columns, partial);
  const GroupShape shape{kBlock, columns.splits > 16 ? 32u : 1u};
  launch(run.stream, shape.grid(*run.stream->device, 2 * s.size), kBlock, parameter_backward<T>,
         columns, partial, gweight, gbias, shape.lanes);
}

tn_plan* make_layer_norm(tn_device*, const Request& request) {
  const auto s = LayerNorm::from(request);
  if (s.rows == 0) return empty_plan();
  return with_float(s.dtype, [s]<class T>(T) {
    return make_plan([s](const tn_run& run) { run_forward<T>(run, s); });
  });
}

tn_plan* make_layer_norm_backward(tn_device* device, const Request& request) {
  const auto s = LayerNorm::from(request);
  if (s.size == 0) return empty_plan();
  const bool sums = request.has_output(1) || request.has_output(2);
  return with_float(s.dtype, [&]<class T>(T) {
    const AffineColumns columns(*device, s);
    return make_plan([s, columns](const tn_run& run) { run_backward<T>(run, s, columns); },
                     sums ? columns.workspace_bytes<T>() : 0);
  });
}

const sdk::Kernel layer_norms({"layer_norm"}, make_layer_norm);
const sdk::Kernel layer_norm_gradients({"layer_norm_backward"}, make_layer_norm_backward);

}  // namespace
}  // namespace tenon::cuda
