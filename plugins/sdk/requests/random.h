// "uniform", "normal", "randint" and "dropout": what their runs' scalars amount to, alike for every
// plugin. How the numbers themselves are made says philox.h.
#pragma once

#include <cstdint>
#include <string>

#include <tenon/plugins/sdk/philox.h>
#include <tenon/plugins/sdk/requests/checks.h>

namespace tenon::sdk {

// Scalars 0 and 1 of a run.
struct RandomSeed {
  uint64_t seed, offset;
  static RandomSeed from(const tn_scalar* s) {
    return {static_cast<uint64_t>(s[0].i), static_cast<uint64_t>(s[1].i)};
  }
};

template <class T>
struct UniformBounds {
  T low, high, range;
  static UniformBounds from(const tn_scalar* s) {
    return {static_cast<T>(s[2].f), static_cast<T>(s[3].f), static_cast<T>(s[3].f - s[2].f)};
  }
};

struct RandintBounds {
  int64_t low;
  uint64_t range;
  static RandintBounds from(const tn_scalar* s) {
    const int64_t low = s[2].i, high = s[3].i;
    if (high <= low) invalid("low {} is not below high {}", low, high);
    return {low, static_cast<uint64_t>(high) - static_cast<uint64_t>(low)};
  }
};

// What a kept element is multiplied with, where elements are dropped with probability p.
template <class T>
T dropout_scale(double p) {
  return p < 1 ? static_cast<T>(1 / (1 - p)) : T(0);
}

}  // namespace tenon::sdk
