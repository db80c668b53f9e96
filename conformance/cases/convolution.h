// Convolutions: with and without bias, groups, strides, padding, dilation.
#pragma once

#include <tenon/conformance/case.h>
#include <tenon/core/ops/convolution.h>

namespace tenon::conformance {

inline List call_conv2d(const json& a, const List& in) {
  Conv2dOptions o;
  if (a.contains("stride")) o.stride = pair_of(a.at("stride"));
  if (a.contains("padding")) o.padding = pair_of(a.at("padding"));
  if (a.contains("dilation")) o.dilation = pair_of(a.at("dilation"));
  o.groups = a.value("groups", int64_t{1});
  return {conv2d(in[0], in[1], at(in, 2), o)};
}

inline std::vector<Variant> convolutions() {
  // clang-format off
  return {
      {"", {{1, 1, 4, 3}, {2, 1, 3, 2}, {2}}},
      {"{'stride': [3, 3]}", {{1, 1, 6, 6}, {1, 1, 2, 2}, {1}}},
      {"{'padding': [1, 0], 'dilation': [2, 1], 'groups': 2}", {{1, 2, 4, 3}, {2, 1, 2, 2}, {2}}},
      {"{'stride': [2, 1], 'padding': [1, 2]}", {{1, 2, 3, 2}, {2, 2, 2, 3}, {2}}},
      {"", {{2, 3, 7, 6}, {4, 3, 3, 3}, {4}}},
      {"", {{2, 3, 7, 8}, {4, 3, 3, 3}, absent()}},
      {"{'stride': [2, 1], 'padding': [1, 2]}", {{2, 3, 7, 6}, {4, 3, 3, 2}, {4}}},
      {"{'padding': [2, 2], 'dilation': [2, 2], 'groups': 2}", {{1, 4, 9, 9}, {6, 2, 3, 3}, {6}}},
      {"{'stride': [2, 2], 'padding': [1, 1], 'groups': 4}", {{3, 4, 5, 5}, {4, 1, 3, 3}, {4}}},
      {"{'stride': [2, 1], 'padding': [1, 1], 'groups': 2}", {{2, 4, 9, 6}, {6, 2, 3, 2}, absent()}},
      {"{'padding': [2, 2], 'dilation': [2, 2], 'groups': 4}", {{2, 4, 8, 8}, {4, 1, 3, 3}, {4}}},
      {"{'stride': [3, 2]}", {{3, 2, 6, 7}, {5, 2, 1, 1}, {5}}},
      {"", {{2, 5, 4, 3}, {3, 5, 1, 1}, {3}}},
      {"", {{1, 1, 3, 3}, {1, 1, 3, 3}, {1}}},
      {"", {{1, 1, 5, 5}, {1, 1, 5, 5}, absent()}},
      {"", {{3, 4, 5}, {2, 3, 2, 2}, absent()}},
      {"", {{0, 2, 6, 7}, {5, 2, 3, 3}, {5}}},
      {"", {{2, 0, 4, 4}, {3, 0, 3, 3}, {3}}},
      {"", {{20, 1, 32, 32}, {2, 1, 3, 3}, {2}}, kF32},
  };
  // clang-format on
}

inline std::vector<Line> convolution_cases() {
  constexpr Tolerance kConvolution = {1e-4, 1e-12, 4e-3, 4e-2};
  return {{"conv2d",
           call_conv2d,
           kReals,
           convolutions(),
           kConvolution,
           {.types_elsewhere = kHalves, .types_of_cpu = kHalves, .values = Values::ordinary}}};
}

}  // namespace tenon::conformance
