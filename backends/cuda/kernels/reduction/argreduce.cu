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

template <class R>
tn_plan* plan_of(tn_device* device, const Request& request, int64_t dim) {
  const auto& x = request.input(0);
  Reduction<R> reduction(
      *device, ReduceShape::of(x, x.rank ? std::vector<int64_t>{dim} : std::vector<int64_t>{}));
  return make_plan(
      [reduction](const tn_run& run) {
        reduction.run(run.stream, run.inputs[0], run.outputs[0], run.workspace);
      },
      reduction.workspace_bytes());
}

template <bool Largest>
tn_plan* make(tn_device* device, const Request& request) {
  auto &x = request.input(0), &y = request.output(0);
  const int64_t dim = request.get_int("dim");
  require_contiguous(request, y);
  if (y.dtype != TN_I64) refuse_dtype(request, y.dtype);
  if (dim < 0 || dim >= std::max<int64_t>(x.rank, 1))
    sdk::invalid("dim " + std::to_string(dim) + " of a tensor of " + std::to_string(x.rank) +
                 " dimensions");
  if (sdk::numel(y) == 0) return empty_plan();
  if (sdk::numel(x) == 0) sdk::invalid("of no elements");
  switch (x.dtype) {
    case TN_F32:
      return plan_of<Argument<float, Largest>>(device, request, dim);
    case TN_F64:
      return plan_of<Argument<double, Largest>>(device, request, dim);
    case TN_I64:
      return plan_of<Argument<int64_t, Largest>>(device, request, dim);
    case TN_I32:
      return plan_of<Argument<int32_t, Largest>>(device, request, dim);
    case TN_U8:
    case TN_BOOL:
      return plan_of<Argument<uint8_t, Largest>>(device, request, dim);
    default:
      refuse_dtype(request, x.dtype);
  }
}

const sdk::Kernel largest({"argmax"}, make<true>);
const sdk::Kernel smallest({"argmin"}, make<false>);

}  // namespace
}  // namespace tenon::cuda
