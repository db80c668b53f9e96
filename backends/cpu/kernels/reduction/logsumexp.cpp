// log(sum(exp(x))) over dimensions, in one pass over memory.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/reduction/reduce.h"
#include "simd/math.h"

namespace tenon::cpu {
namespace {

template <class T>
inline constexpr T kLargest = std::numeric_limits<T>::max();

// What elements amount to: the largest of them, `top`, and the sum of exp(x - top). `top` is always
// a number, so that no difference from it is inf - inf: of elements that are all -inf the sum is 0,
// with inf among them it is inf, and their logarithms are right as they are. In memory an
// accumulator is the two of them, one behind the other; V is T, or a packet for as many outputs.
template <class V>
struct Exponentials {
  V top, sum;
};

template <class T>
Vec<T> number(Vec<T> top) {
  return Eigen::internal::pmin(max_vec<T>(top, splat(-kLargest<T>)), splat(kLargest<T>));
}

template <int First, class V, int... I>
V every_second(V a, V b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, (First + 2 * I)...);
}
template <class T>
Exponentials<Vec<T>> load_acc(const T* acc, Full) {
  constexpr auto lanes = std::make_integer_sequence<int, kWidth<T>>();
  const Vec<T> a = load(acc), b = load(acc + kWidth<T>);
  return {every_second<0>(a, b, lanes), every_second<1>(a, b, lanes)};
}
template <class T>
Exponentials<Vec<T>> load_acc(const T* acc, Rest rest) {
  T few[2 * kWidth<T>] = {};
  std::copy_n(acc, 2 * rest.count, few);
  return load_acc(few, Full{});
}
template <class T>
void store_acc(T* acc, const Exponentials<Vec<T>>& e, Full) {
  store<T>(acc, zip_low(e.top, e.sum));
  store<T>(acc + kWidth<T>, zip_high(e.top, e.sum));
}
template <class T>
void store_acc(T* acc, const Exponentials<Vec<T>>& e, Rest rest) {
  T few[2 * kWidth<T>];
  store_acc(few, e, Full{});
  std::copy_n(few, 2 * rest.count, acc);
}

template <class T>
Exponentials<Vec<T>> combined(const Exponentials<Vec<T>>& a, const Exponentials<Vec<T>>& b) {
  const Vec<T> top = max_vec<T>(a.top, b.top);
  return {top, a.sum * math::exp<T>(a.top - top) + b.sum * math::exp<T>(b.top - top)};
}

template <class T>
void init_exponentials(void* acc, int64_t n) {
  auto* a = static_cast<T*>(acc);
  for (int64_t k = 0; k < n; ++k) a[2 * k] = -kLargest<T>, a[2 * k + 1] = 0;
}

// Blocks that stay in cache are read twice: for their largest element, then for the sum.
template <class T>
void fold_exponentials(T* total, const T* row, int64_t n) {
  constexpr int64_t kBlock = 1024;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t m = std::min(kBlock, n - begin);
    const T* x = row + begin;
    const T top = std::clamp(max_row(m, x), -kLargest<T>, kLargest<T>);
    const T sum = sum_row<T>(m, [&](int64_t i, auto part) {
      return keep<T>(math::exp<T>(load(x + i, part) - top), part);
    });
    if (total[1] == 0) {  // nothing so far, or only -inf
      total[0] = top;
      total[1] = sum;
    } else {
      const T larger = std::max(total[0], top);
      total[1] = total[1] * std::exp(total[0] - larger) + sum * std::exp(top - larger);
      total[0] = larger;
    }
  }
}

template <class T>
void fold_rows_of_exponentials(void* acc, const void* x, int64_t stride, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r)
    fold_exponentials(static_cast<T*>(acc) + 2 * r, static_cast<const T*>(x) + r * stride, n);
}

// A packet of rows at once; of fewer too, so that a row has the bits that it has among others.
template <class T>
void fold_short_exponentials(void* acc, const void* in, int64_t rows, int64_t n) {
  T few[kWidth<T> * kShortRow];
  for_lanes<T>(rows, [&](int64_t r, auto part) {
    T* a = static_cast<T*>(acc) + 2 * r;
    const T* x = static_cast<const T*>(in) + r * n;
    if (rows - r < kWidth<T>) {
      std::fill(std::copy_n(x, (rows - r) * n, few), few + kWidth<T> * n, T(0));
      x = few;
    }
    const auto column = [=](int64_t i) { return Eigen::internal::pgather<T, Vec<T>>(x + i, n); };
    Exponentials<Vec<T>> e{splat(-kLargest<T>), splat(T(0))};
    for (int64_t i = 0; i < n; ++i) e.top = max_vec<T>(column(i), e.top);
    e.top = number<T>(e.top);
    for (int64_t i = 0; i < n; ++i) e.sum += math::exp<T>(column(i) - e.top);
    store_acc(a, combined<T>(load_acc(a, part), e), part);
  });
}

// Takes one exponential for each element: that of the smaller one of element and `top`, minus the
// larger one.
template <class T>
void add_exponentials(T* a, const T* x, int64_t n) {
  for_lanes<T>(n, [&](int64_t i, auto part) {
    const auto e = load_acc(a + 2 * i, part);
    const Vec<T> v = load(x + i, part), finite = number<T>(v), top = max_vec<T>(finite, e.top);
    const Vec<T> scale = math::exp<T>(Eigen::internal::pmin(v, e.top) - top);
    // v - finite is 0 except for inf, which it keeps.
    const Vec<T> larger = e.sum * scale + (splat(T(1)) + (v - finite)), smaller = e.sum + scale;
    const Vec<T> sum = v > e.top ? larger : smaller;
    store_acc<T>(a + 2 * i, {top, v == v ? sum : v}, part);
  });
}

template <class T>
void add_rows_of_exponentials(void* acc, const void* x, int64_t stride, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r)
    add_exponentials(static_cast<T*>(acc), static_cast<const T*>(x) + r * stride, n);
}

template <class T>
void combine_exponentials(void* acc, const void* other, int64_t n) {
  auto* a = static_cast<T*>(acc);
  auto* b = static_cast<const T*>(other);
  for_lanes<T>(n, [&](int64_t i, auto part) {
    store_acc(a + 2 * i, combined<T>(load_acc(a + 2 * i, part), load_acc(b + 2 * i, part)), part);
  });
}

template <class T>
void finish_exponentials(void* y, int64_t step, const void* acc, int64_t n, int64_t, double) {
  for_lanes<T>(n, [&](int64_t i, auto part) {
    const auto e = load_acc(static_cast<const T*>(acc) + 2 * i, part);
    const Vec<T> result = e.top + math::log<T>(e.sum);
    T* to = static_cast<T*>(y) + i * step;
    if (step == 1) return store<T>(to, result, part);
    T lanes[kWidth<T>];
    store(lanes, result);
    for (int64_t k = 0; k < std::min<int64_t>(kWidth<T>, n - i); ++k) to[k * step] = lanes[k];
  });
}

tn_plan* make_logsumexp(tn_device*, const Request& request) {
  return with_float(computed_as(request.input(0).dtype), [&]<class T>(T) {
    return reduction_plan(
        request, {sizeof(T), 2 * sizeof(T), sizeof(T), init_exponentials<T>,
                  fold_rows_of_exponentials<T>, fold_short_exponentials<T>,
                  add_rows_of_exponentials<T>, combine_exponentials<T>, finish_exponentials<T>});
  });
}

const sdk::Kernel logsumexp({"logsumexp"}, make_logsumexp);

}  // namespace
}  // namespace tenon::cpu
