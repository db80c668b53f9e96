#include "device/convert.h"
#include "device/launch.h"
#include "device/vector.h"
#include "kernels/linalg/bias.h"

namespace tenon::cuda {
namespace {

// A thread takes V elements of one channel at a time.
template <class T, int V, class Index>
__global__ void bias_kernel(bool add, const T* __restrict__ bias, T* y, Index packs,
                            Index packs_per_channel, Index channels) {
  const Index step = static_cast<Index>(gridDim.x) * blockDim.x;
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < packs; i += step) {
    const auto b = widen(bias[i / packs_per_channel % channels]);
    Pack<T, V> pack;
    if (add) pack = load_pack<V>(y + i * V);
#pragma unroll
    for (int v = 0; v < V; ++v) pack.at[v] = cast<T>(add ? widen(pack.at[v]) + b : b);
    store_pack<V>(y + i * V, pack);
  }
}

template <class T, int V>
void start(tn_stream* stream, BiasMode mode, const void* bias, void* y, int64_t outer,
           int64_t channels, int64_t inner) {
  const int64_t per_channel = inner / V, packs = outer * channels * per_channel;
  const dim3 grid(stride_blocks(*stream->device, packs)), block(kBlock);
  const bool add = mode == BiasMode::add;
  auto run = [&](auto index) {
    using Index = decltype(index);
    launch(stream, grid, block, bias_kernel<T, V, Index>, add, static_cast<const T*>(bias),
           static_cast<T*>(y), packs, per_channel, channels);
  };
  // The grid's step may carry the index beyond the end: room for it in 32 bits.
  if (packs * V < (int64_t{1} << 31)) {
    run(uint32_t{});
  } else {
    run(uint64_t{});
  }
}

template <class T>
void choose(tn_stream* stream, BiasMode mode, const void* bias, void* y, int64_t outer,
            int64_t channels, int64_t inner) {
  constexpr int wide = static_cast<int>(16 / sizeof(T));
  if (inner % wide == 0 && aligned(y, 16)) {
    start<T, wide>(stream, mode, bias, y, outer, channels, inner);
  } else {
    start<T, 1>(stream, mode, bias, y, outer, channels, inner);
  }
}

}  // namespace

void apply_bias(tn_stream* stream, BiasMode mode, const void* bias, void* y, int64_t outer,
                int64_t channels, int64_t inner, tn_dtype dtype) {
  auto run = [&]<class T>(T) { choose<T>(stream, mode, bias, y, outer, channels, inner); };
  switch (dtype) {
    case TN_F64:
      return run(double{});
    case TN_F16:
      return run(Half{});
    case TN_BF16:
      return run(BFloat{});
    default:
      return run(float{});
  }
}

}  // namespace tenon::cuda
