// Losses, with every option.
#pragma once

#include <tenon/conformance/case.h>
#include <tenon/conformance/cases/loss_more.h>
#include <tenon/conformance/cases/reductions.h>
#include <tenon/core/ops/loss.h>

namespace tenon::conformance {

inline List call_cross_entropy(const json& a, const List& in) {
  return {cross_entropy(in[0], in[1],
                        {at(in, 2), reduction_of(a), a.value("ignore_index", int64_t{-100}),
                         a.value("label_smoothing", 0.0)})};
}
inline List call_nll_loss(const json& a, const List& in) {
  return {
      nll_loss(in[0], in[1], {at(in, 2), reduction_of(a), a.value("ignore_index", int64_t{-100})})};
}
inline List call_mse_loss(const json& a, const List& in) {
  return {mse_loss(in[0], in[1], reduction_of(a))};
}
inline List call_l1_loss(const json& a, const List& in) {
  return {l1_loss(in[0], in[1], reduction_of(a))};
}

// Every option with rows of every size; `smoothing`: label smoothing as well.
inline std::vector<Variant> labels(bool smoothing) {
  std::vector<Variant> variants;
  for (auto [n, c] : std::initializer_list<std::pair<int64_t, int64_t>>{
           {5, 3}, {1, 1}, {5, 2}, {7, 10}, {64, 12}, {3, 600}, {2, 3000}, {300, 5}, {0, 3}})
    for (const char* reduction : {"mean", "sum", "none"})
      for (int options = 0; options < (smoothing ? 8 : 4); ++options) {
        const bool weighted = options & 1, ignored = options & 2;
        if (n > 10 && options != (n + c) % 8) continue;  // one set of options for each
        variants.push_back(
            {"{'reduction': '" + std::string(reduction) + "'" +
                 (ignored ? ", 'ignore_index': 1" : "") +
                 (options & 4 ? ", 'label_smoothing': 0.1" : "") + "}",
             {In(Shape{n, c}), index_in({n}, c), weighted ? constant({c}) : absent()}});
      }
  // Pixels: a label for each.
  variants.push_back({"{'reduction': 'mean'}", {{2, 3, 2, 2}, index_in({2, 2, 2}, 3)}});
  variants.push_back({"{'reduction': 'none'}", {{2, 5, 7, 3}, index_in({2, 7, 3}, 5)}});
  variants.push_back({"{'reduction': 'mean'}", {{20000, 3}, index_in({20000}, 3)}, kF32});
  return variants;
}
inline std::vector<Variant> distances() {
  std::vector<Variant> variants;
  for (const char* reduction : {"mean", "sum", "none"})
    for (const Shape& shape : {Shape{3, 2}, Shape{}, Shape{64, 31}, Shape{2, 3, 7}})
      variants.push_back(
          {"{'reduction': '" + std::string(reduction) + "'}", {In(shape), In(shape)}});
  return variants;
}

inline std::vector<Line> loss_cases() {
  // clang-format off
  std::vector<Line> lines = {
      {"cross_entropy", call_cross_entropy, kReals, labels(true), kSums, {.types_of_cpu = kHalves, .values = Values::ordinary, .inputs = "input target weight"}},
      {"nll_loss", call_nll_loss, kReals, labels(false), kSums, {.types_of_cpu = kHalves, .values = Values::ordinary, .inputs = "input target weight"}},
      {"mse_loss", call_mse_loss, kReals, distances(), kSums, {.types_of_cpu = kHalves, .values = Values::ordinary}},
      {"l1_loss", call_l1_loss, kReals, distances(), kSums, {.types_of_cpu = kHalves, .values = Values::ordinary}},
  };
  // clang-format on
  const auto more = more_losses();
  lines.insert(lines.end(), more.begin(), more.end());
  return lines;
}

}  // namespace tenon::conformance
