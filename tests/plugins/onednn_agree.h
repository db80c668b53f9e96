// What the onednn overlay computes against what the base plugin computes.
#pragma once

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "overlaid.h"

namespace tenon::test::overlaid {

inline std::string text_of(const Case& c) {
  std::string text = c.op;
  for (auto& d : c.inputs) {
    text += " (";
    for (uint32_t i = 0; d && i < d->rank; ++i)
      text += (i ? ", " : "") + std::to_string(d->shape[i]) + ":" + std::to_string(d->strides[i]);
    text += ")";
  }
  return text;
}

// Products in bf16 of this many elements a row, which crash in oneDNN 2.
inline bool may_be_refused(int64_t k) { return k % 2 != 0; }

// Both compute `c` and agree up to rounding, where `sums` are what the largest sum of absolute
// values may be; the overlay gives the same bits twice. Returns false where the overlay refuses.
inline bool agree(const Case& c, tn_dtype dtype, double sums,
                  const std::vector<Values>& given = {}) {
  std::vector<Values> values = given;
  for (size_t i = values.size(); i < c.inputs.size(); ++i)
    values.push_back(random_values(c.inputs[i] ? c.inputs[i]->extent() : 0));
  const auto got = both().overlay.run(c, dtype, values);
  if (!got) return false;
  const auto again = both().overlay.run(c, dtype, values);
  BOOST_TEST(std::memcmp(got->data(), again->data(), got->size() * sizeof(float)) == 0, text_of(c));
  std::string reason;
  const auto expected = both().base.run(c, TN_F32, values, &reason);
  BOOST_REQUIRE_MESSAGE(expected, text_of(c) << ": " << reason);
  double worst = 0;
  for (size_t i = 0; i < got->size(); ++i) {
    const double e = (*expected)[i], g = (*got)[i];
    if (std::isnan(e) && std::isnan(g)) continue;
    const double allowed =
        2e-7 * sums + (dtype == TN_BF16 ? std::abs(e) / 128 + 1e-30 : std::abs(e) * 1e-6);
    worst = std::max(worst, e == g ? 0 : std::abs(e - g) / allowed);
    if (std::isnan(e) || std::isnan(g)) worst = INFINITY;
  }
  BOOST_TEST(worst <= 1, text_of(c) << " in " << (dtype == TN_BF16 ? "bf16" : "f32") << ": off by "
                                    << worst << " times what rounding explains");
  return true;
}

inline std::string refusal(const Case& c, tn_dtype dtype = TN_F32) {
  std::vector<Values> values;
  for (auto& d : c.inputs) values.push_back(random_values(d ? d->extent() : 0));
  std::string reason = "accepted";
  both().overlay.run(c, dtype, values, &reason);
  return reason;
}

// A matrix in rows or in columns, with or without gaps.
inline Dims matrix_strides(int64_t rows, int64_t cols) {
  const int64_t gap = draw(0, 1) * draw(1, 5);
  return draw(0, 1) ? Dims{cols + gap, 1} : Dims{1, rows + gap};
}

inline bool has_bf16() {
  return refusal({"matmul", {Desc({4, 4}), Desc({4, 4})}, Desc({4, 4})}, TN_BF16) == "accepted";
}

// f32 numbers in a vector of the code that the overlay runs here: oneDNN's variable may allow it
// less than the processor has.
inline int vector_lanes() {
  if (has_bf16()) return 16;
  const char* most = std::getenv("ONEDNN_MAX_CPU_ISA");
  return __builtin_cpu_supports("avx2") && !has(most ? most : "", "SSE41") ? 8 : 4;
}

// The gradient of a 3 x 3 weight, from images of so many channels.
inline Case weight_gradient(int64_t n, int64_t channels, int64_t side, int64_t groups) {
  const Desc maps({n, channels, side, side}), weight({channels, channels / groups, 3, 3});
  return {"conv2d_backward_weight",
          {maps, maps},
          weight,
          {Attr("padding", Dims{1, 1}), Attr("stride", Dims{1, 1}), Attr("dilation", Dims{1, 1}),
           Attr("groups", groups)}};
}
// Estimates of the overlay and of the base, in nanoseconds.
inline std::pair<double, double> costs(const Case& c) {
  const auto ours = both().overlay.plan(c, TN_F32), base = both().base.plan(c, TN_F32);
  return {double(ours->plan().cost_ns), double(base->plan().cost_ns)};
}

}  // namespace tenon::test::overlaid
