// Where the largest or smallest element lies along one dimension: the first of equals, and NaN
// before all others.
#include "kernels/reduction/reduce.h"

namespace tenon::cuda {
namespace {

template <class T>
struct Found {
  int64_t index;  // -1: nothing yet
  T value;
  __device__ Found shuffled(unsigned mask) const {
    return {shuffle_xor(index, mask), shuffle_xor(value, mask)};
  }
};

template <class T, bool Largest>
struct Argument {
  using In = T;
  using Acc = Found<T>;
  using Out = int64_t;
  static constexpr int kInputs = 1, kLoad = std::is_same_v<T, float> ? kFullPack<T> : 1;

  __device__ static Acc init() { return {-1, T(0)}; }
  __device__ static bool beats(T x, T best) {
    return (Largest ? x > best : x < best) | ((x != x) & (best == best));
  }
  __device__ static Acc combine(const Acc& a, const Acc& b) {
    if (b.index < 0) return a;
    if (a.index < 0) return b;
    if (beats(a.value, b.value)) return a;
    return beats(b.value, a.value) || b.index < a.index ? b : a;
  }
  // What one thread takes comes in the order of its index, so that the first of equals stays.
  template <int N>
  __device__ static void take(Acc& acc, const T* x, const T*, T, int64_t index, int64_t step) {
#pragma unroll
    for (int k = 0; k < N; ++k)
      if (acc.index < 0 || beats(x[k], acc.value)) acc = {index + k * step, x[k]};
  }
  __device__ static int64_t finish(const Acc& a, double) { return a.index; }
};

template <bool Largest>
tn_plan* make(tn_device* device, const Request& request) {
  const auto r = sdk::ArgReduceRequest::from(request);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  return with_number(sdk::byte_for_bool(r.dtype), [&]<class T>(T) {
    const ReduceShape shape(request.input(0), {static_cast<int64_t>(r.dim)});
    return reduction_plan(ReductionWalk<Argument<T, Largest>>(*device, shape));
  });
}

const sdk::Kernel largest({"argmax"}, make<true>);
const sdk::Kernel smallest({"argmin"}, make<false>);

}  // namespace
}  // namespace tenon::cuda
