// Sums, products, extremes and variance over dimensions.
#include "kernels/reduction/reduce.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <type_traits>

#include <Eigen/Core>

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

// Op combines two accumulators, or one and an element. Eigen's know packets of floats.
template <class T>
struct Sum {
  using In = T;
  using Acc = Wide<T>;
  using Out = Total<T>;
  using Op = functor::scalar_sum_op<Acc>;
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
  static Acc init() { return 1; }
};
// NaN wins, and stays.
template <class T>
struct Amax {
  using In = T;
  using Acc = T;
  using Out = T;
  using Op = functor::scalar_max_op<T, T, Eigen::PropagateNaN>;
  using Limits = std::numeric_limits<T>;
  static T init() { return Limits::has_infinity ? -Limits::infinity() : Limits::lowest(); }
  static T finish(T a, int64_t) { return a; }
};
template <class T>
struct Amin : Amax<T> {
  using Op = functor::scalar_min_op<T, T, Eigen::PropagateNaN>;
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
typename R::Acc take(typename R::Acc a, typename R::Acc x) {
  return typename R::Op()(a, x);
}

// Half of the lanes with the other half, until one is left.
template <class R, int kLanes>
typename R::Acc join(const Eigen::Array<typename R::Acc, kLanes, 1>& lanes) {
  if constexpr (kLanes == 1) {
    return lanes[0];
  } else {
    using Half = Eigen::Array<typename R::Acc, kLanes / 2, 1>;
    Half half;
    if constexpr (std::is_floating_point_v<typename R::Acc>) {
      half = lanes.template head<kLanes / 2>().binaryExpr(lanes.template tail<kLanes / 2>(),
                                                          typename R::Op());
    } else {
      for (int k = 0; k < kLanes / 2; ++k) half[k] = take<R>(lanes[k], lanes[kLanes / 2 + k]);
    }
    return join<R, kLanes / 2>(half);
  }
}

// Folds the whole groups of kLanes elements of x[i, n) and moves i behind them.
template <class R, int kLanes>
typename R::Acc fold_groups(const typename R::In* x, int64_t& i, int64_t n) {
  using Acc = typename R::Acc;
  using In = typename R::In;
  using Lanes = Eigen::Array<Acc, kLanes, 1>;
  if (n - i < kLanes) return R::init();
  Lanes lanes = Lanes::Constant(R::init());
  for (; i + kLanes <= n; i += kLanes) {
    if constexpr (std::is_floating_point_v<Acc>) {
      const Eigen::Map<const Eigen::Array<In, kLanes, 1>> part(x + i);
      lanes = lanes.binaryExpr(part.template cast<Acc>(), typename R::Op());
    } else {
      for (int k = 0; k < kLanes; ++k) lanes[k] = take<R>(lanes[k], static_cast<Acc>(x[i + k]));
    }
  }
  return join<R, kLanes>(lanes);
}

// Folds a part of a row in independent lanes, so that it vectorises and errors stay those of short
// sums.
template <class R>
typename R::Acc fold_part(const typename R::In* x, int64_t n) {
  using Acc = typename R::Acc;
  constexpr int kLanes = std::is_floating_point_v<Acc> ? 256 / sizeof(Acc) : 32;
  int64_t i = 0;
  Acc total = fold_groups<R, kLanes>(x, i, n);
  total = take<R>(total, fold_groups<R, kLanes / 4>(x, i, n));
  for (; i < n; ++i) total = take<R>(total, static_cast<Acc>(x[i]));
  return total;
}

// Long rows by halves: the rounding error of a sum grows with the logarithm of its length.
template <class R>
typename R::Acc fold_row(const typename R::In* x, int64_t n) {
  constexpr int64_t kPart = 4096;
  if (n <= kPart) return fold_part<R>(x, n);
  const int64_t half = n / 2 / kPart * kPart + (n / 2 < kPart ? kPart : 0);
  // One after the other: as arguments of one call the second would be read first, and memory
  // backwards.
  const typename R::Acc first = fold_row<R>(x, half);
  return take<R>(first, fold_row<R>(x + half, n - half));
}

template <class R>
void fold_lanes(void* acc, const void* in, int64_t n) {
  typename R::Acc total;
  std::memcpy(&total, acc, sizeof total);
  total = take<R>(total, fold_row<R>(static_cast<const typename R::In*>(in), n));
  std::memcpy(acc, &total, sizeof total);
}

// Rows of a few elements: sixteen of them at once.
template <class R>
void fold_short(void* acc, const void* in, int64_t rows, int64_t n) {
  constexpr int64_t kLanes = 16;
  using Acc = typename R::Acc;
  auto* a = static_cast<Acc*>(acc);
  auto* x = static_cast<const typename R::In*>(in);
  int64_t r = 0;
  for (; r + kLanes <= rows; r += kLanes) {
    Acc lanes[kLanes];
    std::copy_n(a + r, kLanes, lanes);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t k = 0; k < kLanes; ++k)
        lanes[k] = take<R>(lanes[k], static_cast<Acc>(x[(r + k) * n + i]));
    std::copy_n(lanes, kLanes, a + r);
  }
  for (; r < rows; ++r)
    for (int64_t i = 0; i < n; ++i) a[r] = take<R>(a[r], static_cast<Acc>(x[r * n + i]));
}

template <class R>
Reducer table() {
  using Acc = typename R::Acc;
  using In = typename R::In;
  using Out = typename R::Out;
  return {sizeof(In),
          sizeof(Acc),
          sizeof(Out),
          [](void* acc, int64_t n) { std::fill_n(static_cast<Acc*>(acc), n, R::init()); },
          fold_lanes<R>,
          fold_short<R>,
          [](void* acc, const void* x, int64_t n) {
            auto* a = static_cast<Acc*>(acc);
            auto* v = static_cast<const In*>(x);
            for (int64_t k = 0; k < n; ++k) a[k] = take<R>(a[k], static_cast<Acc>(v[k]));
          },
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
void fold_moments(void* acc, const void* in, int64_t n) {
  constexpr int64_t kBlock = 1024, kLanes = 16;
  auto& total = *static_cast<Moments*>(acc);
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    int64_t m = std::min(kBlock, n - begin), i = 0;
    const T* x = static_cast<const T*>(in) + begin;
    double mean = 0, m2 = 0, lanes[kLanes] = {};
    fold_lanes<Sum<T>>(&mean, x, m);
    mean /= static_cast<double>(m);
    for (; i + kLanes <= m; i += kLanes)
      for (int64_t k = 0; k < kLanes; ++k) lanes[k] += (x[i + k] - mean) * (x[i + k] - mean);
    for (; i < m; ++i) m2 += (x[i] - mean) * (x[i] - mean);
    for (double lane : lanes) m2 += lane;
    total = combine(total, {static_cast<double>(m), mean, m2});
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
          fold_moments<T>,
          [](void* acc, const void* x, int64_t rows, int64_t n) {
            for (int64_t r = 0; r < rows; ++r)
              fold_moments<T>(static_cast<Moments*>(acc) + r, static_cast<const T*>(x) + r * n, n);
          },
          [](void* acc, const void* x, int64_t n) {
            for (int64_t k = 0; k < n; ++k) {
              auto& a = static_cast<Moments*>(acc)[k];
              double value = static_cast<const T*>(x)[k], delta = value - a.mean;
              a.n += 1;
              a.mean += delta / a.n;
              a.m2 += delta * (value - a.mean);
            }
          },
          [](void* acc, const void* other, int64_t n) {
            for (int64_t k = 0; k < n; ++k) {
              auto& a = static_cast<Moments*>(acc)[k];
              a = combine(a, static_cast<const Moments*>(other)[k]);
            }
          },
          [](void* y, int64_t step, const void* acc, int64_t n, int64_t count, double correction) {
            double divisor = std::max(0.0, static_cast<double>(count) - correction);
            for (int64_t k = 0; k < n; ++k)
              static_cast<T*>(y)[k * step] = static_cast<T>(
                  count == 0 ? NAN : static_cast<const Moments*>(acc)[k].m2 / divisor);
          }};
}

// Rows of half types, converted to f32: their few digits leave room for sums in f32, of which
// twice as many fit a vector. Blocks that overflow there are summed again in f64.
void fold_halves(void* acc, const void* in, int64_t n) {
  auto* x = static_cast<const float*>(in);
  const double sum = sums_of_row<1, float>(
      n, [x](int64_t i, auto part, Vec<float>(&sums)[1]) { sums[0] += load(x + i, part); })[0];
  if (!std::isfinite(sum)) return fold_lanes<Sum<float>>(acc, in, n);
  *static_cast<double*>(acc) += sum;
}
template <class R>
Reducer sum_table(const Request& request) {
  Reducer reducer = table<R>();
  if (has_16_bits(request.input(0).dtype)) reducer.fold = fold_halves;
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
  double correction = static_cast<double>(request.get_int("correction"));
  return with_float(computed_as(request.input(0).dtype), [&]<class T>(T) {
    return reduction_plan(request, moments_table<T>(), correction);
  });
});

}  // namespace
}  // namespace tenon::cpu
