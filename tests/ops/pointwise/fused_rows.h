// What tests of programs that reduce rows share.
#pragma once

#include <cmath>
#include <random>
#include <string_view>
#include <vector>

#include <tenon/conformance/bytes.h>
#include <tenon/conformance/fused.h>
#include <tenon/core/factories.h>

namespace tenon::test {

// Those of numbers.
inline const char* const kReductions[] = {"sum",  "mean", "prod",     "amax",
                                          "amin", "var",  "logsumexp"};

inline bool reduces_dtype(std::string_view op, DType dtype) {
  if (op == "any" || op == "all") return dtype == boolean;
  if (op == "sum" || op == "prod") return true;
  if (op == "amax" || op == "amin") return dtype != boolean;
  return is_floating_point(dtype);
}

inline Tensor drawn_rows(const Shape& shape, DType dtype, uint64_t seed, bool oddly = false) {
  static const double odd[] = {0, -0.0, 1, -1, 1e30, -1e30, 1e-40, INFINITY, -INFINITY, NAN};
  std::mt19937_64 random(seed);
  std::vector<double> v(static_cast<size_t>(shape.numel()));
  for (double& x : v) {
    x = static_cast<double>(static_cast<int64_t>(random() % 4001) - 2000) / 256;
    if (oddly && random() % 16 == 0) x = odd[random() % std::size(odd)];
    if (!is_floating_point(dtype)) x = std::isfinite(x) && std::abs(x) < 1e9 ? std::floor(x) : 3;
    if (dtype == u8) x = std::abs(x);
  }
  return conformance::copied_to(tensor(v, shape).to(dtype), default_device());
}

inline FusedValue reduced(conformance::FusedCase& c, std::string_view op, FusedValue x) {
  return op == "var" ? c.of(op, {x}, {}, "correction", 0) : c.of(op, {x});
}

}  // namespace tenon::test
