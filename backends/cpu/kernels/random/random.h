// Random words, computed for a block of counters at a time so that compilers vectorize the rounds
// and what follows. plugins/sdk/philox.h defines which bits element i gets.
#pragma once

#include <algorithm>
#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include <tenon/plugins/sdk/requests/random.h>

#include "kernels/pointwise/pointwise.h"
#include "simd/packet.h"

namespace tenon::cpu {

inline constexpr int64_t kBatch = 64;          // Philox blocks made at once
inline constexpr int64_t kRandomGrain = 4096;  // elements

// Eigen 3.4 has no packets of 64-bit words on all levels.
typedef uint64_t Words __attribute__((vector_size(kVectorBytes)));
inline Words splat_word(uint64_t x) { return x - Words{}; }

// Products of the low words of 64-bit lanes. Compilers make a full 64-bit product of the plain
// expression.
inline Words multiply_words(Words a, uint32_t b) {
  const Words factor = splat_word(b);
#if defined(__AVX512F__)
  return reinterpret_cast<Words>(_mm512_maskz_mul_epu32(0xff, reinterpret_cast<__m512i>(a),
                                                        reinterpret_cast<__m512i>(factor)));
#elif defined(__AVX2__)
  return reinterpret_cast<Words>(
      _mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(factor)));
#elif defined(__SSE2__)
  return reinterpret_cast<Words>(
      _mm_mul_epu32(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(factor)));
#else
  return a * factor;
#endif
}

struct RandomWords : sdk::RandomSeed {
  // The words of blocks [first, first + kBatch): what sdk::philox gives, a vector of blocks at a
  // time, a word in each 64-bit lane.
  [[gnu::noinline]] void words(uint64_t first, uint32_t* out) const {
    using V = Words;
    constexpr int w = kVectorBytes / static_cast<int>(sizeof(uint64_t));
    const V low = splat_word(0xffffffffu);
    V iota;
    for (int i = 0; i < w; ++i) iota[i] = static_cast<uint64_t>(i);
    for (int64_t i = 0; i < kBatch; i += w) {
      V block = splat_word(first + static_cast<uint64_t>(i)) + iota;
      V c0 = block & low, c1 = block >> 32, c2 = splat_word(offset & 0xffffffffu),
        c3 = splat_word(offset >> 32);
      uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
      for (int round = 0; round < 10; ++round) {
        V a = multiply_words(c0, 0xD2511F53u), b = multiply_words(c2, 0xCD9E8D57u);
        c0 = (b >> 32) ^ c1 ^ splat_word(k0);
        c2 = (a >> 32) ^ c3 ^ splat_word(k1);
        c1 = b & low;
        c3 = a & low;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
      }
      V front = c0 | c1 << 32, back = c2 | c3 << 32;
      const V both[] = {zip_low(front, back), zip_high(front, back)};
      std::memcpy(out + 4 * i, both, sizeof(both));
    }
  }
};

// make(words, values): fills the kBatch * PerBlock values of a batch. emit(i, n, values) receives
// elements [i, i + n).
template <int PerBlock, class T, class Make, class Emit>
void generate_random(const tn_run& run, int64_t n, Make make, Emit emit) {
  constexpr int64_t per_batch = kBatch * PerBlock;
  const RandomWords stream{sdk::RandomSeed::from(run.scalars)};
  int64_t batches = (n + per_batch - 1) / per_batch;
  parallel_for(batches, kRandomGrain / per_batch, [&](int64_t begin, int64_t end, uint32_t) {
    alignas(64) uint32_t words[kBatch * 4];
    alignas(64) T values[per_batch];
    for (int64_t b = begin; b < end; ++b) {
      stream.words(static_cast<uint64_t>(b * kBatch), words);
      make(words, values);
      emit(b * per_batch, std::min(per_batch, n - b * per_batch), values);
    }
  });
}

// A plan that calls run_part(run, n) for an output of n elements, each of which takes `ns`.
template <class F>
tn_plan* plan_random(const Request& request, F run_part, double ns) {
  auto& y = request.output(0);
  require_contiguous(y);
  int64_t n = sdk::numel(y);
  if (n == 0) return empty_plan();
  const uint64_t cost = 50 + static_cast<uint64_t>(ns * static_cast<double>(n));
  return sdk::make_plan([n, run_part](const tn_run& run) { run_part(run, n); }, {0, cost});
}

}  // namespace tenon::cpu
