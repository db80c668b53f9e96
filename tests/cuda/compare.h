// How the tests of the cuda plugin's kernels compare a device with the cpu: the same values in the
// same strides on both, the same calls, and results side by side.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <random>

#include <tenon/conformance/layout.h>
#include <tenon/core/ops/shape.h>

#include "cuda/emulated.h"
#include "ops/check.h"

namespace tenon::test {

namespace layout = conformance::layout;
using conformance::Layout;
using conformance::layouts;
using conformance::misaligned;

inline const Device kGpu("cuda:0"), kCpu("cpu");

// What a result may differ by: libraries' functions are exact to a few units in the last place, and
// f16 and bf16 round once more.
inline double tolerance(DType t) {
  switch (t) {
    case DType::f32:
      return 2e-6;
    case DType::f64:
      return 1e-14;
    case DType::f16:
      return 1e-3;
    case DType::bf16:
      return 8e-3;
    default:
      return 0;
  }
}

inline std::mt19937& generator() {
  static std::mt19937 engine(20);
  return engine;
}
inline int64_t pick(int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(generator());
}

// Random values of a type, a few of them awkward: zeros of both signs, infinities, NaN, the
// smallest and the largest.
inline Tensor random_values(const Shape& shape, DType dtype, bool awkward = true) {
  std::vector<double> values(static_cast<size_t>(shape.numel()));
  constexpr double inf = std::numeric_limits<double>::infinity();
  const double odd[] = {0.0,          -0.0,  1.0,     -1.0, inf, -inf,
                        std::nan(""), 1e-42, -1e-310, 3e38, 0.5, 2.5};
  // SplitMix64: the standard library's distributions would take longer than what is tested.
  uint64_t state = generator()();
  for (auto& v : values) {
    uint64_t bits = state += 0x9e3779b97f4a7c15;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
    bits ^= bits >> 31;
    const auto below = [&](uint64_t n) { return static_cast<double>((bits >> 32) % n); };
    // The sum of four numbers in [-2, 2).
    v = -8;
    for (int i = 0; i < 64; i += 16) v += static_cast<double>(bits >> i & 0xffff) / 16384;
    if (awkward && bits % 10 == 0) v = odd[(bits >> 32) % 12];
    if (is_integer(dtype)) v = dtype == DType::u8 ? below(256) : below(19) - 9;
    if (dtype == DType::boolean) v = below(2);
  }
  return doubles(values, shape).to(dtype);
}

// The same on both devices.
struct Both {
  Tensor cpu, gpu;
};
inline Both both(const Tensor& whole, const Layout& layout, const Shape& shape) {
  return {layout.view(whole, shape), layout.view(whole.to(kGpu), shape)};
}
inline Both both(const Tensor& x) { return {x, x.to(kGpu)}; }
inline Both random_both(const Shape& shape, DType dtype, const Layout& layout,
                        bool awkward = true) {
  return both(random_values(layout.whole(shape), dtype, awkward), layout, shape);
}

inline void require_same(const Tensor& gpu, const Tensor& cpu, const std::string& what,
                         double allowed) {
  BOOST_REQUIRE_MESSAGE(gpu.device() == kGpu, what << ": the result is on " << gpu.device().str());
  BOOST_REQUIRE_MESSAGE(gpu.dtype() == cpu.dtype(), what << ": dtype " << name_of(gpu.dtype()));
  BOOST_REQUIRE_MESSAGE(gpu.shape() == cpu.shape(), what << ": shape " << gpu.shape().str());
  if (cpu.dtype() == DType::i64) {
    BOOST_REQUIRE_MESSAGE(gpu.to_vector<int64_t>() == cpu.to_vector<int64_t>(),
                          what << ": integers differ");
    return;
  }
  auto found = gpu.to_vector<double>(), expected = cpu.to_vector<double>();
  // Boost counts its checks one by one, which would take longer than all else here.
  for (size_t i = 0; i < found.size(); ++i)
    if (!is_close(found[i], expected[i], allowed, allowed))
      BOOST_FAIL(what << ": element " << i << " is " << found[i] << ", expected " << expected[i]);
}
inline void require_same(const Tensor& gpu, const Tensor& cpu, const std::string& what) {
  require_same(gpu, cpu, what, tolerance(cpu.dtype()));
}

inline std::string describe(const std::string& op, DType dtype, const Shape& shape,
                            const std::string& more = "") {
  return op + " of " + std::string(name_of(dtype)) + " " + shape.str() +
         (more.empty() ? "" : ", " + more);
}

}  // namespace tenon::test
