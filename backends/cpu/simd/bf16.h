// Packets of f32 from bf16 in memory and back, rounded as convert.h does, for kernels that need no
// buffer between.
#pragma once

#include <algorithm>
#include <bit>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "simd/convert.h"
#include "simd/packet.h"

namespace tenon::cpu {

inline Vec<float> load_bf16(const uint16_t* p) {
#if defined(EIGEN_VECTORIZE_AVX512)
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
#elif defined(EIGEN_VECTORIZE_AVX2)
  const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
#else
  float wide[kWidth<float>];
  std::transform(p, p + kWidth<float>, wide, widened);
  return load(wide);
#endif
}

inline void store_bf16(uint16_t* p, Vec<float> v) {
#if defined(EIGEN_VECTORIZE_AVX2)
  typedef uint32_t Words __attribute__((vector_size(kVectorBytes)));
  const Words bits = std::bit_cast<Words>(v), even = (bits + 0x7fff + (bits >> 16 & 1)) >> 16,
              nan = (bits >> 16 & 0x8000) | 0x7fc0, narrow = v == v ? even : nan;
#if defined(EIGEN_VECTORIZE_AVX512)
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtepi32_epi16(std::bit_cast<__m512i>(narrow)));
#else
  const __m256i words = std::bit_cast<__m256i>(narrow);
  _mm_storeu_si128(
      reinterpret_cast<__m128i*>(p),
      _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
#endif
#else
  float wide[kWidth<float>];
  store(wide, v);
  std::transform(wide, wide + kWidth<float>, p, narrowed);
#endif
}

// y[i] = f(x[i]…) for packets of f32, where all are bf16; the last packet of a row may be partly
// there.
template <class F, class... In>
inline void for_bf16(int64_t n, uint16_t* y, F&& f, const In*... x) {
  constexpr int64_t w = kWidth<float>;
  int64_t i = 0;
  for (; i + w <= n; i += w) store_bf16(y + i, f(load_bf16(x + i)...));
  if (i == n) return;
  const auto some = [&](const uint16_t* p) {
    uint16_t few[w] = {};
    std::copy(p + i, p + n, few);
    return load_bf16(few);
  };
  uint16_t few[w];
  store_bf16(few, f(some(x)...));
  std::copy_n(few, n - i, y + i);
}

}  // namespace tenon::cpu
