// What the pooling operators share: the geometry of their windows, and which windows an input pixel
// lies in.
#pragma once

#include <string>

#include "device/block_reduce.h"
#include "runtime/common.h"

namespace tenon::cuda {

// n x c planes of h x w pooled to oh x ow.
struct Pool {
  int64_t planes, h, w, oh, ow;
  int64_t kh = 0, kw = 0, sh = 1, sw = 1, ph = 0, pw = 0, dh = 1, dw = 1;
  bool count_pad = false;
  Divider by_h{}, by_w{}, by_oh{}, by_ow{};

  // `large` is the pooled input, `small` the output. Reads the attributes where there are windows.
  static Pool from(const Request& request, const tn_tensor_desc& large, const tn_tensor_desc& small,
                   bool windows, bool dilated);

  int64_t in_size() const { return h * w; }
  int64_t out_size() const { return oh * ow; }

  struct Pixel {
    int64_t plane, row, column;
  };
  // Of element `at` of the input or the output.
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
