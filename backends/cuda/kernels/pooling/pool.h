// What the pooling operators share: the geometry of their windows, and which windows an input pixel
// lies in.
#pragma once

#include <string>

#include <tenon/plugins/sdk/requests/pooling.h>

#include "device/block_reduce.h"
#include "runtime/common.h"

namespace tenon::cuda {

using sdk::PoolWindows;

struct Pool : sdk::PoolRequest {
  Divider by_h, by_w, by_oh, by_ow;

  Pool(const Request& request, const tn_tensor_desc& large, const tn_tensor_desc& small,
       PoolWindows windows)
      : PoolRequest(from(request, large, small, windows)),
        by_h(divider_of(h)),
        by_w(divider_of(w)),
        by_oh(divider_of(oh)),
        by_ow(divider_of(ow)) {}

  struct Pixel {
    int64_t plane, row, column;
  };
  // Returns where element `at` of the input or the output is.
  __device__ Pixel in_pixel(int64_t at) const {
    Pixel p;
    p.column = split(at, by_w);
    p.row = split(at, by_h);
    p.plane = at;
    return p;
  }
  __device__ Pixel out_pixel(int64_t at) const {
    Pixel p;
    p.column = split(at, by_ow);
    p.row = split(at, by_oh);
    p.plane = at;
    return p;
  }
};

struct Span {
  int64_t begin, end;
};

// Outputs whose windows may hold element i of one dimension, of `n`; `reach` is a window's extent
// less 1.
__device__ inline Span windows_over(int64_t i, int64_t padding, int64_t reach, int64_t stride,
                                    int64_t n) {
  const int64_t low = i + padding - reach, last = divide(i + padding, stride);
  return {low > 0 ? divide(low + stride - 1, stride) : 0, last + 1 < n ? last + 1 : n};
}

}  // namespace tenon::cuda
