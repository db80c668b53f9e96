// Random fills.
#include "kernels/random/random.h"

#include <cstring>

namespace tenon::cpu {
namespace {

// Values straight into the output.
template <int PerBlock, class T, class Make>
void generate_into(const tn_run& run, int64_t n, Make make) {
  auto* y = static_cast<T*>(run.outputs[0]);
  generate_random<PerBlock, T>(run, n, make, [y](int64_t i, int64_t count, const T* values) {
    std::memcpy(y + i, values, static_cast<size_t>(count) * sizeof(T));
  });
}

uint64_t u64_at(const uint32_t* words, int64_t i) {
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
  generate_random<4, float>(run, n, make, [=](int64_t i, int64_t count, const float* values) {
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

const sdk::Kernel uniforms({"uniform"}, [](tn_device*, const Request& request) {
  sdk::require_scalars(request, 4);
  const tn_dtype dtype = request.output(0).dtype;
  if (has_16_bits(dtype))
    return plan_random(
        request, [dtype](const tn_run& run, int64_t n) { uniform_of_16_bits(run, n, dtype); }, 1.8);
  return with_float(dtype, [&]<class T>(T) { return plan_random(request, uniform<T>, 1.2); });
});
const sdk::Kernel normals({"normal"}, [](tn_device*, const Request& request) {
  sdk::require_scalars(request, 4);
  return with_float(request.output(0).dtype,
                    [&]<class T>(T) { return plan_random(request, normal<T>, 1.8); });
});
const sdk::Kernel randints({"randint"}, [](tn_device*, const Request& request) {
  sdk::require_scalars(request, 4);
  return with_index(request.output(0).dtype,
                    [&]<class T>(T) { return plan_random(request, randint<T>, 2.5); });
});

}  // namespace
}  // namespace tenon::cpu
