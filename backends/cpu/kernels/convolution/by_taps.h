// The gradients of a convolution, one tap after the other, for tensors that contain infinity or
// NaN. The fast kernels put zeros between rows and beyond borders; 0 times infinity or NaN is NaN,
// so they would produce NaN in places that no window touches. These kernels read only what windows
// touch.
#pragma once

#include "kernels/convolution/conv.h"

namespace tenon::cpu {

// Calls f(output pixel, input pixel) for each window that has tap (i, j) on the image, and
// beside(output pixel) for each that has it on padding.
template <class F, class G>
void for_windows(const ConvShape& s, int64_t i, int64_t j, F&& f, G&& beside) {
  for (int64_t r = 0; r < s.oh; ++r)
    for (int64_t k = 0; k < s.ow; ++k) {
      const int64_t y = r * s.sh - s.ph + i * s.dh, x = k * s.sw - s.pw + j * s.dw;
      if (y >= 0 && y < s.h && x >= 0 && x < s.w)
        f(r * s.ow + k, y * s.w + x);
      else
        beside(r * s.ow + k);
    }
}

template <class T>
void input_gradient_by_taps(const ConvShape& s, const T* g, const T* weight, T* gx) {
  parallel_for(s.n * s.c, 1, [&](int64_t begin, int64_t end, uint32_t) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const int64_t image = plane / s.c, group = plane % s.c / s.cg, c = plane % s.cg;
      T* to = gx + plane * s.h * s.w;
      std::fill_n(to, s.h * s.w, T(0));
      for (int64_t o = group * s.og; o < (group + 1) * s.og; ++o)
        for (int64_t tap = 0; tap < s.taps(); ++tap) {
          const T* from = g + (image * s.o + o) * s.oh * s.ow;
          const T w = weight[(o * s.cg + c) * s.taps() + tap];
          for_windows(
              s, tap / s.kw, tap % s.kw, [&](int64_t out, int64_t in) { to[in] += w * from[out]; },
              [](int64_t) {});
        }
    }
  });
}

// What one plane of the output gradient and one of the input add to the gradient of tap (i, j).
// Padding counts as zeros.
template <class T>
T weight_gradient_by_windows(const ConvShape& s, const T* g, const T* x, int64_t i, int64_t j) {
  double sum = 0;
  for_windows(
      s, i, j, [&](int64_t out, int64_t in) { sum += static_cast<double>(g[out] * x[in]); },
      [&](int64_t out) { sum += static_cast<double>(g[out] * T(0)); });
  return static_cast<T>(sum);
}

}  // namespace tenon::cpu
