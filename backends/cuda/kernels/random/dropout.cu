// Which words of random bits an element gets is fixed in plugins/sdk/philox.h; a thread makes the
// elements of one Philox block.
#include <tenon/plugins/sdk/requests/random.h>

#include "kernels/pointwise/pointwise.h"

namespace tenon::cuda {
namespace {

using sdk::PhiloxBlock;

// What the words of a block decide: below `threshold` an element is dropped. `none`: p is 1, and
// even NaN becomes 0.
template <class T>
struct Keep {
  uint32_t threshold;
  bool none;
  T scale;
};

template <class T>
__global__ void __launch_bounds__(kBlock) dropout(T* y, uint8_t* mask, const T* x, int64_t n,
                                                  sdk::RandomSeed seed, Keep<T> keep, bool packs) {
  constexpr int count = 4, V = 16 / static_cast<int>(sizeof(T)), loads = count / V;
  int64_t block = static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x, i = block * count;
  if (i >= n) return;
  bool whole = packs && i + count <= n;
  Pack<T, V> in[loads];
  if (whole) {
#pragma unroll
    for (int k = 0; k < loads; ++k) in[k] = load_pack<V>(x + i + k * V);
  } else {
#pragma unroll
    for (int k = 0; k < count; ++k) in[k / V].at[k % V] = i + k < n ? x[i + k] : T(0);
  }
  PhiloxBlock words = sdk::philox(seed.seed, seed.offset, static_cast<uint64_t>(block));
  Pack<uint8_t, count> kept;
  Pack<T, V> out[loads];
#pragma unroll
  for (int k = 0; k < count; ++k) {
    kept.at[k] = !keep.none && words.word[k] >= keep.threshold;
    out[k / V].at[k % V] =
        keep.none ? T(0) : in[k / V].at[k % V] * (static_cast<T>(kept.at[k]) * keep.scale);
  }
  if (whole) {
#pragma unroll
    for (int k = 0; k < loads; ++k) store_pack<V>(y + i + k * V, out[k]);
    store_pack<count>(mask + i, kept);
    return;
  }
#pragma unroll
  for (int k = 0; k < count; ++k) {
    if (i + k >= n) break;
    y[i + k] = out[k / V].at[k % V];
    mask[i + k] = kept.at[k];
  }
}

tn_plan* make_dropout(tn_device*, const Request& request) {
  const auto r = sdk::DropoutRequest::from(request);
  return with_float(r.dtype, [n = r.n]<class T>(T) {
    if (n == 0) return empty_plan();
    return make_plan([n](const tn_run& run) {
      double p = run.scalars[2].f;
      uint64_t threshold = sdk::dropout_threshold(p);
      bool none = threshold > 0xffffffffu;
      Keep<T> keep{static_cast<uint32_t>(threshold), none, sdk::dropout_scale<T>(p)};
      auto* y = static_cast<T*>(run.outputs[0]);
      auto* mask = static_cast<uint8_t*>(run.outputs[1]);
      auto* x = static_cast<const T*>(run.inputs[0]);
      launch(run.stream, dim3(static_cast<unsigned>(ceil_div(n, int64_t{kBlock} * 4))), kBlock,
             dropout<T>, y, mask, x, n, sdk::RandomSeed::from(run.scalars), keep,
             aligned(y, 16) && aligned(x, 16) && aligned(mask, 4));
    });
  });
}
const sdk::Kernel dropouts({"dropout"}, make_dropout);

template <class T>
struct Kept {
  T scale;
  __device__ T operator()(T g, uint8_t mask) const { return g * (static_cast<T>(mask) * scale); }
};

tn_plan* make_dropout_backward(tn_device*, const Request& request) {
  const auto r = sdk::DropoutRequest::from(request);
  return with_float(r.dtype, [&]<class T>(T) {
    if (r.n == 0) return empty_plan();
    return make_plan(
        [loop = loop_over(request, &request.input(0), &request.input(1))](const tn_run& run) {
          Kept<T> kept{sdk::dropout_scale<T>(run.scalars[0].f)};
          loop.run<Kept<T>, T>(run.stream, kept, run.outputs[0], operand<T>(run.inputs[0]),
                               operand<uint8_t>(run.inputs[1]));
        });
  });
}
const sdk::Kernel dropout_backwards({"dropout_backward"}, make_dropout_backward);

}  // namespace
}  // namespace tenon::cuda
