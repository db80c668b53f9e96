// The states of cumulative operators, alike on every device. A scan S has a state that begins as
// init(); of(x, place) is the state of one element, merge(a, b) that of a part `a` and the part `b`
// behind it, and write(out, at, a) stores what the operator gives there.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <tenon/plugins/sdk/host_device.h>

namespace tenon::sdk {

// Says where a scan writes: the results, and for extremes their places.
template <class T>
struct ScanOut {
  T* y;
  int64_t* places;
};

// The type in which a scan sums: f32 is summed in f64, and integers wrap around.
template <class T>
using ScanSum = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;

// The scan of "cumsum": the sum of the elements so far.
template <class T>
struct CumulativeSum {
  using Element = T;
  using State = ScanSum<T>;
  TN_HD static State init() { return 0; }
  TN_HD static State of(T x, int64_t) { return static_cast<State>(x); }
  TN_HD static State merge(State a, State b) { return a + b; }
  TN_HD static void write(const ScanOut<T>& out, int64_t at, State a) {
    out.y[at] = static_cast<T>(a);
  }
};
// The scan of "cumprod": the product of the elements so far.
template <class T>
struct CumulativeProduct : CumulativeSum<T> {
  using State = ScanSum<T>;
  TN_HD static State init() { return 1; }
  TN_HD static State merge(State a, State b) { return a * b; }
};

// The state of CumulativeLogSum: the largest element so far, and the sum of exp(element - largest).
struct ScanLogSum {
  double largest, sum;
};
// The scan of "logcumsumexp": the logarithm of the sum of exp of the elements so far.
template <class T>
struct CumulativeLogSum {
  using Element = T;
  using State = ScanLogSum;
  static constexpr double kNothing = -std::numeric_limits<double>::infinity();
  TN_HD static State init() { return {kNothing, 0}; }
  TN_HD static State of(T x, int64_t) { return {static_cast<double>(x), 1}; }
  // Takes the last of equals; a NaN stays until the next one.
  TN_HD static State merge(State a, State b) {
    if (a.largest == b.largest) return {a.largest, a.sum + b.sum};
    const bool rises = b.largest > a.largest;
    const State high = rises ? b : a, low = rises ? a : b;
    // Where one is NaN the difference is NaN.
    return {high.largest, high.sum + low.sum * std::exp(low.largest - high.largest)};
  }
  TN_HD static void write(const ScanOut<T>& out, int64_t at, State a) {
    out.y[at] = static_cast<T>(a.largest + std::log(a.sum));
  }
};

// The state of CumulativeExtreme: the extreme so far and its place, which is -1 as long as there is
// none.
template <class T>
struct ScanExtreme {
  T value;
  int64_t place;
};
// The scan of "cummax" or "cummin": the largest or smallest element so far and its place.
template <class T, bool Largest>
struct CumulativeExtreme {
  using Element = T;
  using State = ScanExtreme<T>;
  TN_HD static State init() { return {T(0), -1}; }
  TN_HD static State of(T x, int64_t place) { return {x, place}; }
  // The last of equals; a NaN stays until the next one.
  TN_HD static State merge(State a, State b) {
    if (a.place < 0) return b;
    if (b.place < 0) return a;
    const bool later = (Largest ? b.value >= a.value : b.value <= a.value) || b.value != b.value;
    return later ? b : a;
  }
  TN_HD static void write(const ScanOut<T>& out, int64_t at, State a) {
    out.y[at] = a.value;
    out.places[at] = a.place;
  }
};

}  // namespace tenon::sdk
