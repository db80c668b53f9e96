// log(sum(exp(x))) over dimensions, in one pass.
#include "kernels/normalization/softmax.h"
#include "kernels/reduction/reduce.h"

namespace tenon::cuda {
namespace {

template <class T>
inline constexpr T kLargest = std::numeric_limits<T>::max();

// The sum of exp(x - top) over the elements taken. `top` is the largest of them, but always a
// number, so that no difference from it is inf - inf: of elements that are all -inf the sum is 0,
// with inf among them it is inf, and their logarithms are right as they are.
template <class T>
struct Exponentials {
  T top, sum;
  __device__ Exponentials shuffled(unsigned mask) const {
    return {shuffle_xor(top, mask), shuffle_xor(sum, mask)};
  }
};

template <class T>
struct LogSumExp {
  using In = T;
  using Acc = Exponentials<T>;
  using Out = T;
  static constexpr int kInputs = 1, kLoad = kFullPack<T>;

  __device__ static Acc init() { return {-kLargest<T>, T(0)}; }
  // The largest of a pack first, so that the sum is scaled once.
  template <int N>
  __device__ static void take(Acc& acc, const T* x, const T*, T, int64_t, int64_t) {
    T top = acc.top;
#pragma unroll
    for (int k = 0; k < N; ++k) top = x[k] > top ? x[k] : top;
    top = top < kLargest<T> ? top : kLargest<T>;
    if (top > acc.top) acc = {top, acc.sum * exp_of(acc.top - top)};
#pragma unroll
    for (int k = 0; k < N; ++k) acc.sum += exp_of(x[k] - top);
  }
  __device__ static Acc combine(const Acc& a, const Acc& b) {
    const T top = a.top > b.top ? a.top : b.top;
    return {top, a.sum * exp_of(a.top - top) + b.sum * exp_of(b.top - top)};
  }
  __device__ static T finish(const Acc& a, double) { return a.top + log_of(a.sum); }
};

tn_plan* make(tn_device* device, const Request& request) {
  return with_float(request.input(0).dtype,
                    [&]<class T>(T) { return reduction_plan<LogSumExp<T>>(*device, request); });
}

const sdk::Kernel logsumexp_registration({"logsumexp"}, make);

}  // namespace
}  // namespace tenon::cuda
