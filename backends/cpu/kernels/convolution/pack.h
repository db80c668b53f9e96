// Strided operands brought into the order in which the register-blocked kernels read them.
#pragma once

#include <algorithm>

#include "simd/packet.h"

namespace tenon::cpu {

inline constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// `count` <= `pitch` lanes with stride `lane` of `depth` steps with stride `step` become depth x
// pitch. Lanes from count on are zero; where pitch is no whole number of vectors, the last step is
// followed by undefined values, less than a vector of them. `pitch` is at most two vectors, or 8.
template <class T>
void pack(const T* from, int64_t lane, int64_t step, int64_t count, int64_t depth, T* to,
          int64_t pitch) {
  constexpr int width = kWidth<T>, most = width < 4 ? 8 / width : 2;
  int groups = static_cast<int>(ceil_div(pitch, width));
  if (lane == 1) {
    for (int64_t p = 0; p < depth; ++p, from += step, to += pitch)
      for (int64_t i = 0; i < pitch; i += width) {
        int64_t left = count - i;
        store(to + i, left >= width ? load(from + i) : load_part(from + i, left > 0 ? left : 0));
      }
  } else if (step == 1) {
    for (int64_t p = 0; p < depth; p += width, from += width, to += width * pitch) {
      int64_t left = std::min<int64_t>(width, depth - p);
      Vec<T> block[most][width];
      for (int g = 0; g < groups; ++g) {
        if (left == width && (g + 1) * width <= count) {
#pragma GCC unroll 16
          for (int i = 0; i < width; ++i) block[g][i] = load(from + (g * width + i) * lane);
        } else {
          for (int i = 0; i < width; ++i)
            block[g][i] =
                g * width + i >= count ? Vec<T>{} : load_part(from + (g * width + i) * lane, left);
        }
        transpose<T>(block[g]);
      }
      // In order of depth, so that what a short row writes too much is written over.
      for (int i = 0; i < left; ++i)
        for (int g = 0; g < groups; ++g) store(to + i * pitch + g * width, block[g][i]);
    }
  } else {
    for (int64_t p = 0; p < depth; ++p, from += step, to += pitch)
      for (int64_t i = 0; i < pitch; ++i) to[i] = i < count ? from[i * lane] : T(0);
  }
}

}  // namespace tenon::cpu
