// Random fills and dropout. Which bits element i gets is fixed in plugins/sdk/philox.h; here they
// are only made fast: a block of counters at a time, so that the rounds and what follows vectorise.
#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include <tenon/plugins/sdk/requests/random.h>

#include "kernels/pointwise/pointwise.h"
#include "simd/packet.h"

namespace tenon::cpu {
namespace {

constexpr int64_t kBatch = 64;          // Philox blocks made at once
constexpr int64_t kRandomGrain = 4096;  // elements

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

struct Stream : sdk::RandomSeed {
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
void generate(const tn_run& run, int64_t n, Make make, Emit emit) {
  constexpr int64_t per_batch = kBatch * PerBlock;
  const Stream stream{sdk::RandomSeed::from(run.scalars)};
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

// Values straight into the output.
template <int PerBlock, class T, class Make>
void generate_into(const tn_run& run, int64_t n, Make make) {
  auto* y = static_cast<T*>(run.outputs[0]);
  generate<PerBlock, T>(run, n, make, [y](int64_t i, int64_t count, const T* values) {
    std::memcpy(y + i, values, static_cast<size_t>(count) * sizeof(T));
  });
}

inline uint64_t u64_at(const uint32_t* words, int64_t i) {
  return words[2 * i] | static_cast<uint64_t>(words[2 * i + 1]) << 32;
}

template <class T>
constexpr int kUniformsOfBlock = sizeof(T) == 4 ? 4 : 2;

// The values of a batch of blocks.
template <class T>
void make_uniforms(const sdk::UniformBounds<T>& b, const uint32_t* words, T* y) {
  for (int64_t i = 0; i < kBatch * kUniformsOfBlock<T>; ++i) {
    if constexpr (sizeof(T) == 4) {
      y[i] = sdk::uniform_from(sdk::unit_float(words[i]), b.low, b.high, b.range);
    } else {
      y[i] = sdk::uniform_from(sdk::unit_double(u64_at(words, i)), b.low, b.high, b.range);
    }
  }
}

template <class T>
void uniform(const tn_run& run, int64_t n) {
  const auto b = sdk::UniformBounds<T>::from(run.scalars);
  generate_into<kUniformsOfBlock<T>, T>(
      run, n, [=](const uint32_t* words, T* y) { make_uniforms(b, words, y); });
}

// f16 and bf16: the values of f32, rounded. Where rounding reaches high it gives low.
void uniform_of_16_bits(const tn_run& run, int64_t n, tn_dtype dtype) {
  const auto b = sdk::UniformBounds<float>::from(run.scalars);
  const ConvertRow widen = convert_row(TN_F32, dtype), round = convert_row(dtype, TN_F32);
  auto make = [=](const uint32_t* words, float* y) { make_uniforms(b, words, y); };
  generate<4, float>(run, n, make, [=](int64_t i, int64_t count, const float* values) {
    uint16_t rounded[kBatch * 4];
    float wide[kBatch * 4];
    round(count, rounded, values);
    widen(count, wide, rounded);
    for (int64_t k = 0; k < count; ++k) wide[k] = wide[k] < b.high ? wide[k] : b.low;
    round(count, static_cast<uint16_t*>(run.outputs[0]) + i, wide);
  });
}

template <class T>
void normal(const tn_run& run, int64_t n) {
  T mean = static_cast<T>(run.scalars[2].f), std = static_cast<T>(run.scalars[3].f);
  constexpr int per_block = sizeof(T) == 4 ? 4 : 2;
  generate_into<per_block, T>(run, n, [=](const uint32_t* words, T* y) {
    for (int64_t i = 0; i < kBatch * per_block / 2; ++i) {
      T z0, z1;
      if constexpr (sizeof(T) == 4) {
        sdk::normal_pair(words[2 * i], words[2 * i + 1], &z0, &z1);
      } else {
        sdk::normal_pair(u64_at(words, 2 * i), u64_at(words, 2 * i + 1), &z0, &z1);
      }
      y[2 * i] = sdk::normal_from(z0, mean, std);
      y[2 * i + 1] = sdk::normal_from(z1, mean, std);
    }
  });
}

template <class T>
void randint(const tn_run& run, int64_t n) {
  const auto b = sdk::RandintBounds::from(run.scalars);
  generate_into<2, T>(run, n, [=](const uint32_t* words, T* y) {
    for (int64_t i = 0; i < kBatch * 2; ++i)
      y[i] = static_cast<T>(sdk::randint_from(u64_at(words, i), b.low, b.range));
  });
}

uint64_t cost(int64_t n, double ns) {
  return 50 + static_cast<uint64_t>(ns * static_cast<double>(n));
}

template <class F>
tn_plan* plan_of(const Request& request, F run_part, double ns) {
  auto& y = request.output(0);
  require_contiguous(y);
  int64_t n = sdk::numel(y);
  if (n == 0) return empty_plan();
  return sdk::make_plan([n, run_part](const tn_run& run) { run_part(run, n); }, {0, cost(n, ns)});
}

const sdk::Kernel uniforms({"uniform"}, [](tn_device*, const Request& request) {
  const tn_dtype dtype = request.output(0).dtype;
  if (has_16_bits(dtype))
    return plan_of(
        request, [dtype](const tn_run& run, int64_t n) { uniform_of_16_bits(run, n, dtype); }, 1.8);
  return with_float(dtype, [&]<class T>(T) { return plan_of(request, uniform<T>, 1.2); });
});
const sdk::Kernel normals({"normal"}, [](tn_device*, const Request& request) {
  return with_float(request.output(0).dtype,
                    [&]<class T>(T) { return plan_of(request, normal<T>, 1.8); });
});
const sdk::Kernel randints({"randint"}, [](tn_device*, const Request& request) {
  return with_index(request.output(0).dtype,
                    [&]<class T>(T) { return plan_of(request, randint<T>, 2.5); });
});

template <class T>
void dropout(const tn_run& run, int64_t n) {
  double p = run.scalars[2].f;
  uint64_t threshold = sdk::dropout_threshold(p);
  if (threshold > 0xffffffffu) {  // p = 1
    std::memset(run.outputs[0], 0, static_cast<size_t>(n) * sizeof(T));
    std::memset(run.outputs[1], 0, static_cast<size_t>(n));
    return;
  }
  uint32_t least = static_cast<uint32_t>(threshold);
  T scale = sdk::dropout_scale<T>(p);
  auto* x = static_cast<const T*>(run.inputs[0]);
  auto* y = static_cast<T*>(run.outputs[0]);
  auto* mask = static_cast<uint8_t*>(run.outputs[1]);
  auto keep = [least](const uint32_t* words, uint8_t* kept) {
    for (int64_t i = 0; i < kBatch * 4; ++i) kept[i] = words[i] >= least;
  };
  generate<4, uint8_t>(run, n, keep, [=](int64_t i, int64_t count, const uint8_t* kept) {
    std::memcpy(mask + i, kept, static_cast<size_t>(count));
    const T* from = x + i;
    T* to = y + i;
    TN_INDEPENDENT
    for (int64_t k = 0; k < count; ++k) to[k] = from[k] * (static_cast<T>(kept[k]) * scale);
  });
}

tn_plan* make_dropout(tn_device*, const Request& request) {
  require_contiguous(request.input(0));
  return with_float(request.output(0).dtype,
                    [&]<class T>(T) { return plan_of(request, dropout<T>, 1.5); });
}
const sdk::Kernel dropouts({"dropout"}, make_dropout);

template <class T>
void dropout_backward(const tn_run& run, int64_t n) {
  T scale = sdk::dropout_scale<T>(run.scalars[0].f);
  auto* g = static_cast<const T*>(run.inputs[0]);
  auto* mask = static_cast<const uint8_t*>(run.inputs[1]);
  auto* gx = static_cast<T*>(run.outputs[0]);
  parallel_for(n, kGrain, [=](int64_t begin, int64_t end, uint32_t) {
    TN_INDEPENDENT
    for (int64_t i = begin; i < end; ++i) gx[i] = g[i] * (static_cast<T>(mask[i]) * scale);
  });
}

tn_plan* make_dropout_backward(tn_device*, const Request& request) {
  require_contiguous(request.input(0));
  require_contiguous(request.input(1));
  return with_float(request.output(0).dtype,
                    [&]<class T>(T) { return plan_of(request, dropout_backward<T>, 0.3); });
}
const sdk::Kernel dropout_backwards({"dropout_backward"}, make_dropout_backward);

}  // namespace
}  // namespace tenon::cpu
