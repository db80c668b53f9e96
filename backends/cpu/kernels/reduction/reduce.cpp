// Sums, products, extremes and variance over dimensions.
#include "kernels/reduction/reduce.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <type_traits>

#include <Eigen/Core>

#include "kernels/reduction/fold.h"
#include "simd/packet.h"

namespace tenon::cpu {
namespace {

// f32 is summed in f64: a sum of many millions of numbers stays exact to the last place. Integers
// wrap.
template <class T>
using Wide = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;
template <class T>
using Total = std::conditional_t<std::is_floating_point_v<T>, T, int64_t>;

namespace functor = Eigen::internal;

// Op combines two accumulators, or one and an element; combine() does so with packets of floats.
template <class T>
struct Sum {
  using In = T;
  using Acc = Wide<T>;
  using Out = Total<T>;
  using Op = functor::scalar_sum_op<Acc>;
  template <class V>
  static V combine(V a, V x) {
    return a + x;
  }
  static Acc init() { return 0; }
  static Out finish(Acc a, int64_t) { return static_cast<Out>(a); }
};
template <class T>
struct Mean : Sum<T> {
  static T finish(double a, int64_t count) {
    return static_cast<T>(a / static_cast<double>(count));
  }
};
template <class T>
struct Prod : Sum<T> {
  using Acc = Wide<T>;
  using Op = functor::scalar_product_op<Acc>;
  template <class V>
  static V combine(V a, V x) {
    return a * x;
  }
  static Acc init() { return 1; }
};
// A NaN becomes the result and stays it. Eigen's packets that propagate NaN compare more than
// needed: if one of two operands is NaN, pmax and pmin return the first.
template <class T>
struct Amax {
  using In = T;
  using Acc = T;
  using Out = T;
  using Op = functor::scalar_max_op<T, T, Eigen::PropagateNaN>;
  template <class V>
  static V combine(V a, V x) {
    return a == a ? functor::pmax(x, a) : a;
  }
  using Limits = std::numeric_limits<T>;
  static T init() { return Limits::has_infinity ? -Limits::infinity() : Limits::lowest(); }
  static T finish(T a, int64_t) { return a; }
};
template <class T>
struct Amin : Amax<T> {
  using Op = functor::scalar_min_op<T, T, Eigen::PropagateNaN>;
  template <class V>
  static V combine(V a, V x) {
    return a == a ? functor::pmin(x, a) : a;
  }
  using Limits = std::numeric_limits<T>;
  static T init() { return Limits::has_infinity ? Limits::infinity() : Limits::max(); }
};
struct Any {
  using In = uint8_t;
  using Acc = uint8_t;
  using Out = uint8_t;
  using Op = std::bit_or<uint8_t>;
  static Acc init() { return 0; }
  static Acc finish(Acc a, int64_t) { return a; }
};
struct All : Any {
  using Op = std::bit_and<uint8_t>;
  static Acc init() { return 1; }
};

template <class R>
Reducer table() {
  using Acc = typename R::Acc;
  using In = typename R::In;
  using Out = typename R::Out;
  return {sizeof(In),
          sizeof(Acc),
          sizeof(Out),
          [](void* acc, int64_t n) { std::fill_n(static_cast<Acc*>(acc), n, R::init()); },
          fold_rows<R>,
          fold_short<R>,
          add_rows<R>,
          [](void* acc, const void* other, int64_t n) {
            auto* a = static_cast<Acc*>(acc);
            auto* b = static_cast<const Acc*>(other);
            for (int64_t k = 0; k < n; ++k) a[k] = take<R>(a[k], b[k]);
          },
          [](void* y, int64_t step, const void* acc, int64_t n, int64_t count, double) {
            auto* out = static_cast<Out*>(y);
            auto* a = static_cast<const Acc*>(acc);
            for (int64_t k = 0; k < n; ++k) out[k * step] = R::finish(a[k], count);
          }};
}

// Count, mean and sum of squared deviations, combined as Chan, Golub and LeVeque do (1979): one
// pass over memory, no cancellation.
struct Moments {
  double n, mean, m2;
};
Moments combine(const Moments& a, const Moments& b) {
  if (a.n == 0) return b;
  if (b.n == 0) return a;
  double n = a.n + b.n, delta = b.mean - a.mean;
  return {n, a.mean + delta * (b.n / n), a.m2 + b.m2 + delta * delta * (a.n * b.n / n)};
}

// Blocks that stay in cache are read twice: for their mean, then for the deviations from it.
template <class T>
void fold_moments(Moments& total, const T* row, int64_t n) {
  constexpr int64_t kBlock = 1024, kLanes = 16;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    int64_t m = std::min(kBlock, n - begin), i = 0;
    const T* x = row + begin;
    const double mean = fold_row<Sum<T>>(x, m) / static_cast<double>(m);
    double m2 = 0, lanes[kLanes] = {};
    for (; i + kLanes <= m; i += kLanes)
      for (int64_t k = 0; k < kLanes; ++k) lanes[k] += (x[i + k] - mean) * (x[i + k] - mean);
    for (; i < m; ++i) m2 += (x[i] - mean) * (x[i] - mean);
    for (double lane : lanes) m2 += lane;
    total = combine(total, {static_cast<double>(m), mean, m2});
  }
}

template <class T>
void fold_rows_of_moments(void* acc, const void* x, int64_t stride, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r)
    fold_moments(static_cast<Moments*>(acc)[r], static_cast<const T*>(x) + r * stride, n);
}
template <class T>
void add_moments(void* acc, const void* x, int64_t stride, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t k = 0; k < n; ++k) {
      auto& a = static_cast<Moments*>(acc)[k];
      const double value = static_cast<const T*>(x)[r * stride + k], delta = value - a.mean;
      a.n += 1;
      a.mean += delta / a.n;
      a.m2 += delta * (value - a.mean);
    }
}

template <class T>
Reducer moments_table() {
  return {sizeof(T),
          sizeof(Moments),
          sizeof(T),
          [](void* acc, int64_t n) {
            std::fill_n(static_cast<Moments*>(acc), n, Moments{0, 0, 0});
          },
          fold_rows_of_moments<T>,
          [](void* acc, const void* x, int64_t rows, int64_t n) {
            fold_rows_of_moments<T>(acc, x, n, rows, n);
          },
          add_moments<T>,
          [](void* acc, const void* other, int64_t n) {
            for (int64_t k = 0; k < n; ++k) {
              auto& a = static_cast<Moments*>(acc)[k];
              a = combine(a, static_cast<const Moments*>(other)[k]);
            }
          },
          [](void* y, int64_t step, const void* acc, int64_t n, int64_t count, double correction) {
            const double divisor = sdk::variance_divisor(static_cast<double>(count), correction);
            for (int64_t k = 0; k < n; ++k)
              static_cast<T*>(y)[k * step] =
                  static_cast<T>(static_cast<const Moments*>(acc)[k].m2 / divisor);
          }};
}

// Sums of half types: their few digits leave room for sums in f32, of which twice as many fit a
// vector. Blocks that overflow there are summed again in f64.
constexpr int64_t kHalves = 2048;

double sum_again(const float* x, int64_t n) { return fold_row<Sum<float>>(x, n); }

// Rows that were converted to f32.
void fold_wide_halves(void* acc, const void* in, int64_t stride, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* x = static_cast<const float*>(in) + r * stride;
    const double sum = sums_of_row<1, float>(
        n, [x](int64_t i, auto part, Vec<float>(&sums)[1]) { sums[0] += load(x + i, part); })[0];
    static_cast<double*>(acc)[r] += std::isfinite(sum) ? sum : sum_again(x, n);
  }
}

// A word of two bf16 is an f32 for each of them: with the other one's bits set to 0.
template <int kWords>
void add_pairs(Vec<float>* sums, const uint16_t* x) {
  typedef uint32_t Words __attribute__((vector_size(kVectorBytes)));
  for (int k = 0; k < kWords; ++k) {
    Words pairs;
    std::memcpy(&pairs, x + 2 * k * kWidth<float>, sizeof pairs);
    sums[2 * k] += std::bit_cast<Vec<float>>(pairs << 16);
    sums[2 * k + 1] += std::bit_cast<Vec<float>>(pairs & 0xffff0000);
  }
}

// Sums at most kHalves elements.
double sum_of_bf16(const uint16_t* x, int64_t n) {
  constexpr int64_t pairs = 2 * kWidth<float>;
  Vec<float> s[8]{};
  int64_t i = 0;
  for (; i + 4 * pairs <= n; i += 4 * pairs) add_pairs<4>(s, x + i);
  for (; i + pairs <= n; i += pairs) add_pairs<1>(s, x + i);
  if (i < n) {
    uint16_t rest[pairs] = {};
    std::copy(x + i, x + n, rest);
    add_pairs<1>(s + 2, rest);
  }
  const double sum =
      sum_lanes<float>(((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7])));
  if (std::isfinite(sum)) return sum;
  float wide[kHalves];
  std::transform(x, x + n, wide, widened);
  return sum_again(wide, n);
}
void fold_bf16(void* acc, const void* in, int64_t stride, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r) {
    const uint16_t* x = static_cast<const uint16_t*>(in) + r * stride;
    for (int64_t i = 0; i < n; i += kHalves)
      static_cast<double*>(acc)[r] += sum_of_bf16(x + i, std::min(kHalves, n - i));
  }
}

template <class R>
Reducer sum_table(const Request& request) {
  Reducer reducer = table<R>();
  const tn_dtype dtype = request.input(0).dtype;
  if (has_16_bits(dtype)) reducer.fold = fold_wide_halves;
  if (dtype == TN_BF16) reducer.fold_halves = fold_bf16;
  return reducer;
}

template <template <class> class R>
tn_plan* make_number(tn_device*, const Request& request) {
  return with_number(sdk::byte_for_bool(computed_as(request.input(0).dtype)),
                     [&]<class T>(T) { return reduction_plan(request, table<R<T>>()); });
}

template <class R>
tn_plan* make_bool(tn_device*, const Request& request) {
  if (request.input(0).dtype != TN_BOOL) refuse_dtype(request.input(0).dtype);
  return reduction_plan(request, table<R>());
}

const sdk::Kernel sums({"sum"}, [](tn_device*, const Request& request) {
  return with_number(sdk::byte_for_bool(computed_as(request.input(0).dtype)), [&]<class T>(T) {
    return reduction_plan(request, sum_table<Sum<T>>(request));
  });
});
const sdk::Kernel products({"prod"}, make_number<Prod>);
const sdk::Kernel maxima({"amax"}, make_number<Amax>);
const sdk::Kernel minima({"amin"}, make_number<Amin>);
const sdk::Kernel any({"any"}, make_bool<Any>);
const sdk::Kernel all({"all"}, make_bool<All>);
const sdk::Kernel means({"mean"}, [](tn_device*, const Request& request) {
  return with_float(computed_as(request.input(0).dtype), [&]<class T>(T) {
    return reduction_plan(request, sum_table<Mean<T>>(request));
  });
});
const sdk::Kernel variances({"var"}, [](tn_device*, const Request& request) {
  const double correction = sdk::variance_correction(request);
  return with_float(computed_as(request.input(0).dtype), [&]<class T>(T) {
    return reduction_plan(request, moments_table<T>(), correction);
  });
});

}  // namespace
}  // namespace tenon::cpu
