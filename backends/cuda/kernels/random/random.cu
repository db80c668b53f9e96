// Random fills. plugins/sdk/philox.h defines which bits element i gets; one thread makes the
// elements of one Philox block. That header states every rounding, so nvcc's contraction of
// products and sums changes no bit here.
#include <tenon/plugins/sdk/requests/random.h>

#include "kernels/pointwise/pointwise.h"

namespace tenon::cuda {
namespace {

using sdk::PhiloxBlock;

template <class Number>
struct Uniform : sdk::UniformBounds<Number> {
  using T = Number;
  static constexpr int kCount = sizeof(T) == 4 ? 4 : 2;  // elements of a Philox block
  explicit Uniform(const tn_scalar* s) : sdk::UniformBounds<T>(sdk::UniformBounds<T>::from(s)) {}
  __device__ T operator()(const PhiloxBlock& block, int k) const {
    T unit;
    if constexpr (kCount == 4) {
      unit = sdk::unit_float(block.word[k]);
    } else {
      unit = sdk::unit_double(sdk::philox_u64(block, k));
    }
    return sdk::uniform_from(unit, this->low, this->high, this->range);
  }
};

template <class Number>
struct Normal {
  using T = Number;
  static constexpr int kCount = sizeof(T) == 4 ? 4 : 2;
  T mean, std;
  explicit Normal(const tn_scalar* s) : mean(static_cast<T>(s[2].f)), std(static_cast<T>(s[3].f)) {}
  // Elements come in pairs; what is computed for both is computed once after inlining.
  __device__ T operator()(const PhiloxBlock& block, int k) const {
    T z[2];
    if constexpr (kCount == 4) {
      sdk::normal_pair(block.word[k & ~1], block.word[k | 1], &z[0], &z[1]);
    } else {
      sdk::normal_pair(sdk::philox_u64(block, 0), sdk::philox_u64(block, 1), &z[0], &z[1]);
    }
    return sdk::normal_from(z[k & 1], mean, std);
  }
};

template <class Integer>
struct RandInt : sdk::RandintBounds {
  using T = Integer;
  static constexpr int kCount = 2;
  explicit RandInt(const tn_scalar* s) : sdk::RandintBounds(from(s)) {}
  __device__ T operator()(const PhiloxBlock& block, int k) const {
    return static_cast<T>(sdk::randint_from(sdk::philox_u64(block, k), low, range));
  }
};

template <class Maker>
__global__ void __launch_bounds__(kBlock)
    generate(typename Maker::T* y, int64_t n, sdk::RandomSeed seed, Maker make, bool packs) {
  constexpr int count = Maker::kCount;
  int64_t block = static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x, i = block * count;
  if (i >= n) return;
  PhiloxBlock words = sdk::philox(seed.seed, seed.offset, static_cast<uint64_t>(block));
  Pack<typename Maker::T, count> x;
#pragma unroll
  for (int k = 0; k < count; ++k) x.at[k] = make(words, k);
  if (packs && i + count <= n) return store_pack<count>(y + i, x);
#pragma unroll
  for (int k = 0; k < count; ++k)
    if (i + k < n) y[i + k] = x.at[k];
}

template <class Maker>
tn_plan* plan_of(const Request& request) {
  using T = typename Maker::T;
  auto& y = request.output(0);
  require_contiguous(y);
  int64_t n = sdk::numel(y);
  if (n == 0) return empty_plan();
  return make_plan([n](const tn_run& run) {
    auto* s = run.scalars;
    auto* to = static_cast<T*>(run.outputs[0]);
    launch(run.stream, dim3(static_cast<unsigned>(ceil_div(n, int64_t{kBlock} * Maker::kCount))),
           kBlock, generate<Maker>, to, n, sdk::RandomSeed::from(s), Maker(s),
           aligned(to, Maker::kCount * sizeof(T)));
  });
}

const sdk::Kernel uniforms({"uniform"}, [](tn_device*, const Request& request) {
  sdk::require_scalars(request, 4);
  return with_float(request.output(0).dtype,
                    [&]<class T>(T) { return plan_of<Uniform<T>>(request); });
});
const sdk::Kernel normals({"normal"}, [](tn_device*, const Request& request) {
  sdk::require_scalars(request, 4);
  return with_float(request.output(0).dtype,
                    [&]<class T>(T) { return plan_of<Normal<T>>(request); });
});
const sdk::Kernel randints({"randint"}, [](tn_device*, const Request& request) {
  sdk::require_scalars(request, 4);
  return with_index(request.output(0).dtype,
                    [&]<class T>(T) { return plan_of<RandInt<T>>(request); });
});

}  // namespace
}  // namespace tenon::cuda
