// What the pooling operators share: the geometry of their windows, and pairs of neighbours for
// windows of 2 x 2.
#pragma once

#include <string>
#include <utility>

#include <tenon/plugins/sdk/requests/pooling.h>

#include "runtime/common.h"
#include "simd/packet.h"

namespace tenon::cpu {

using sdk::PoolWindows;

struct Pool : sdk::PoolRequest {
  Pool(const Request& request, const tn_tensor_desc& large, const tn_tensor_desc& small,
       PoolWindows windows)
      : PoolRequest(from(request, large, small, windows)) {}

  bool halves() const {
    return kh == 2 && kw == 2 && sh == 2 && sw == 2 && ph == 0 && pw == 0 && dh == 1 && dw == 1 &&
           oh <= h / 2 && ow <= w / 2;
  }
  // Outputs whose tap j lies on the image: [first, last) of ow.
  std::pair<int64_t, int64_t> columns(int64_t j) const {
    int64_t shift = pw - j * dw;  // x * sw >= shift and x * sw < w + shift
    int64_t first = shift > 0 ? (shift + sw - 1) / sw : 0,
            last = w + shift > 0 ? (w + shift + sw - 1) / sw : 0;
    return {first, std::clamp(last, first, std::max(first, ow))};
  }
  // Taps that lie on the image for some output: most of a kernel that is far larger than the image
  // lie on padding for all.
  std::pair<int64_t, int64_t> row_taps(int64_t r) const {
    return taps_on(r * sh - ph, r * sh - ph, h, kh, dh);
  }
  std::pair<int64_t, int64_t> column_taps() const {
    return taps_on(-pw, (ow - 1) * sw - pw, w, kw, dw);
  }

  // body(begin, end, slot) of planes [begin, end).
  template <class F>
  void for_ranges(F&& body) const {
    double work = double(in_size()) + double(out_size()) * double(kh ? kh * kw : 1);
    parallel_for(planes, std::max<int64_t>(1, static_cast<int64_t>(kGrain / std::max(1.0, work))),
                 std::forward<F>(body));
  }
  template <class F>
  void for_planes(F&& body) const {
    for_ranges([&](int64_t begin, int64_t end, uint32_t slot) {
      for (int64_t i = begin; i < end; ++i) body(i, slot);
    });
  }
  uint64_t cost(tn_dtype dtype) const {
    double work = halves() ? double(in_size()) / 2
                           : double(out_size()) * double(std::max<int64_t>(1, kh * kw)) +
                                 double(in_size()) / 4;
    return 100 + static_cast<uint64_t>(std::min(double(planes) * work / 3, 0x1p60)) *
                     sdk::dtype_size(dtype) / 4;
  }

 private:
  // Returns the taps [begin, end) of windows that begin at `first` … `last` which can meet [0, n).
  static std::pair<int64_t, int64_t> taps_on(int64_t first, int64_t last, int64_t n, int64_t k,
                                             int64_t d) {
    int64_t begin = last >= 0 ? 0 : (-last + d - 1) / d,
            end = n > first ? (n - first + d - 1) / d : 0;
    return {std::min(begin, k), std::clamp(end, std::min(begin, k), k)};
  }
};

// Even and odd elements of 2 * kWidth from `p`.
template <class T>
struct Pairs {
  Vec<T> even, odd;
};
template <class T, int... I>
inline Pairs<T> split_pairs(Vec<T> a, Vec<T> b, std::integer_sequence<int, I...>) {
  return {__builtin_shufflevector(a, b, (2 * I)...), __builtin_shufflevector(a, b, (2 * I + 1)...)};
}
template <class T>
inline Pairs<T> split_pairs(Vec<T> a, Vec<T> b) {
  return split_pairs<T>(a, b, std::make_integer_sequence<int, kWidth<T>>());
}
// The first and second vector of the 2 * count elements from `p`.
template <class T>
inline Vec<T> first_of_pair(const T* p, Full) {
  return load(p);
}
template <class T>
inline Vec<T> second_of_pair(const T* p, Full) {
  return load(p + kWidth<T>);
}
template <class T>
inline Vec<T> first_of_pair(const T* p, Rest rest) {
  return 2 * rest.count >= kWidth<T> ? load(p) : load_part(p, 2 * rest.count);
}
template <class T>
inline Vec<T> second_of_pair(const T* p, Rest rest) {
  return 2 * rest.count > kWidth<T> ? load_part(p + kWidth<T>, 2 * rest.count - kWidth<T>)
                                    : Vec<T>{};
}

}  // namespace tenon::cpu
