// Convolutions and transposed ones: with and without bias, groups, strides, padding, dilation.
#pragma once

#include <tenon/conformance/sizes.h>
#include <tenon/core/ops/convolution.h>

namespace tenon::conformance {

template <class Size,
          Tensor (*function)(const Tensor&, const Tensor&, const Tensor&, const ConvOptions<Size>&)>
List call_conv(const json& a, const List& in) {
  ConvOptions<Size> o;
  read_size(a, "stride", o.stride);
  read_size(a, "dilation", o.dilation);
  if (a.contains("padding") && a.at("padding").is_string())
    o.padding = a.at("padding").get<std::string>();
  else
    read_size(a, "padding", o.padding);
  o.groups = a.value("groups", int64_t{1});
  o.padding_mode = a.value("padding_mode", o.padding_mode);
  return {function(in[0], in[1], at(in, 2), o)};
}

template <class Size, auto function>
List call_conv_transpose(const json& a, const List& in) {
  ConvTransposeOptions<Size> o;
  read_size(a, "stride", o.stride);
  read_size(a, "padding", o.padding);
  read_size(a, "output_padding", o.output_padding);
  read_size(a, "dilation", o.dilation);
  o.groups = a.value("groups", int64_t{1});
  return {function(in[0], in[1], at(in, 2), o)};
}

// ---- variants ----

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
      {"{'padding': 'same', 'dilation': [1, 2]}", {{2, 2, 5, 6}, {3, 2, 2, 4}, {3}}},
      {"{'padding': [1, 2], 'padding_mode': 'reflect'}", {{1, 2, 4, 3}, {2, 2, 2, 2}, {2}}},
  };
  // clang-format on
}

inline std::vector<Variant> convolutions_1d() {
  // clang-format off
  return {
      {"", {{1, 2, 5}, {3, 2, 2}, {3}}},
      {"{'stride': 3, 'padding': 1, 'dilation': 2, 'groups': 2}", {{2, 2, 7}, {4, 1, 2}, {4}}},
      {"{'padding': 'same', 'dilation': 3}", {{1, 2, 6}, {2, 2, 2}, absent()}},
      {"{'padding': 2, 'padding_mode': 'circular'}", {{2, 2, 5}, {3, 2, 3}, {3}}},
      {"{'stride': 5}", {{2, 3, 17}, {4, 3, 2}, {4}}},
      {"{'padding': 4, 'groups': 3}", {{2, 6, 31}, {3, 2, 5}, absent()}},
      {"", {{3, 9}, {2, 3, 4}, {2}}},
      {"", {{0, 2, 9}, {3, 2, 4}, {3}}},
      {"{'padding': 2}", {{16, 8, 401}, {8, 8, 5}, {8}}, kF32},
  };
  // clang-format on
}

inline std::vector<Variant> convolutions_3d() {
  // clang-format off
  return {
      {"", {{1, 1, 3, 2, 3}, {2, 1, 2, 2, 1}, {2}}},
      {"{'stride': [2, 1, 3], 'padding': [1, 0, 1], 'dilation': [2, 1, 1], 'groups': 2}", {{1, 2, 4, 2, 2}, {2, 1, 2, 1, 2}, {2}}},
      {"{'padding': 'same'}", {{1, 1, 3, 2, 3}, {1, 1, 2, 3, 2}, absent()}},
      {"{'stride': [2, 1, 1], 'padding': [2, 0, 0], 'dilation': [2, 1, 3], 'groups': 2}", {{1, 2, 4, 2, 2}, {2, 1, 3, 1, 1}, {2}}},
      {"{'padding': [1, 1, 0], 'padding_mode': 'replicate'}", {{1, 2, 2, 3, 2}, {2, 2, 2, 2, 1}, {2}}},
      {"{'stride': [3, 2, 1], 'padding': [2, 1, 1]}", {{2, 3, 7, 6, 5}, {4, 3, 3, 2, 3}, {4}}},
      {"{'padding': 1, 'groups': 2}", {{1, 4, 5, 6, 7}, {6, 2, 3, 3, 3}, absent()}},
      {"", {{2, 2, 4, 5, 6}, {3, 2, 1, 1, 1}, {3}}},
      {"", {{2, 2, 3, 5, 4}, {3, 2, 3, 2, 2}, {3}}},
      {"", {{2, 4, 5, 4}, {3, 2, 3, 2, 2}, {3}}},
      {"", {{0, 2, 4, 5, 6}, {3, 2, 2, 2, 2}, {3}}},
      {"{'padding': 1}", {{2, 4, 9, 31, 31}, {4, 4, 3, 3, 3}, {4}}, kF32},
  };
  // clang-format on
}

inline std::vector<Variant> transposed_1d() {
  // clang-format off
  return {
      {"", {{1, 2, 4}, {2, 3, 2}, {3}}},
      {"{'stride': 3, 'padding': 1, 'output_padding': 2, 'groups': 2}", {{2, 2, 3}, {2, 2, 2}, {4}}},
      {"{'dilation': 3, 'output_padding': 2}", {{1, 2, 3}, {2, 2, 2}, absent()}},
      {"{'stride': 2, 'dilation': 5, 'output_padding': 4, 'padding': 3}", {{2, 2, 4}, {2, 2, 3}, {2}}},
      {"{'stride': 5}", {{2, 3, 9}, {3, 4, 2}, {4}}},
      {"", {{3, 9}, {3, 2, 4}, {2}}},
      {"{'stride': 2}", {{0, 2, 9}, {2, 3, 4}, {3}}},
      {"{'stride': 2, 'padding': 2}", {{16, 8, 201}, {8, 8, 5}, {8}}, kF32},
  };
  // clang-format on
}

inline std::vector<Variant> transposed_2d() {
  // clang-format off
  return {
      {"", {{1, 1, 3, 2}, {1, 2, 3, 2}, {2}}},
      {"{'stride': [2, 3], 'padding': [1, 0], 'output_padding': [1, 2], 'groups': 2}", {{1, 2, 2, 3}, {2, 2, 3, 2}, {4}}},
      {"{'dilation': [3, 2], 'output_padding': [2, 1]}", {{1, 2, 2, 3}, {2, 1, 2, 2}, absent()}},
      {"{'stride': 2, 'padding': 1}", {{2, 3, 7, 6}, {3, 4, 3, 3}, {4}}},
      {"{'stride': [4, 5]}", {{2, 3, 3, 4}, {3, 4, 2, 3}, absent()}},
      {"{'stride': 2, 'dilation': 4, 'output_padding': 3, 'padding': 2}", {{2, 2, 3, 4}, {2, 2, 2, 3}, {2}}},
      {"{'padding': [1, 2], 'groups': 4}", {{3, 4, 5, 5}, {4, 1, 3, 3}, {4}}},
      {"", {{2, 5, 4, 3}, {5, 3, 1, 1}, {3}}},
      {"", {{3, 4, 5}, {3, 2, 2, 2}, {2}}},
      {"", {{0, 2, 6, 7}, {2, 5, 3, 3}, {5}}},
      {"", {{2, 0, 4, 4}, {0, 3, 3, 3}, {3}}},
      {"{'stride': 2, 'padding': 1}", {{4, 4, 31, 31}, {4, 4, 4, 4}, {4}}, kF32},
  };
  // clang-format on
}

inline std::vector<Variant> transposed_3d() {
  // clang-format off
  return {
      {"", {{1, 1, 2, 2, 2}, {1, 2, 2, 1, 2}, {2}}},
      {"{'stride': [2, 1, 3], 'padding': [1, 0, 1], 'output_padding': [1, 0, 2], 'groups': 2}", {{1, 2, 2, 1, 2}, {2, 1, 3, 1, 2}, {2}}},
      {"{'dilation': [3, 2, 1], 'output_padding': [2, 1, 0]}", {{1, 1, 2, 2, 2}, {1, 1, 2, 2, 1}, absent()}},
      {"{'stride': [2, 1, 1], 'padding': [1, 0, 0], 'dilation': [3, 1, 1], 'output_padding': [2, 0, 0]}", {{1, 2, 2, 2, 2}, {2, 1, 3, 1, 1}, {1}}},
      {"{'dilation': [1, 2, 1], 'output_padding': [0, 1, 0]}", {{1, 2, 2, 2, 2}, {2, 1, 3, 1, 1}, {1}}},
      {"{'stride': 2, 'padding': 1}", {{2, 3, 3, 4, 5}, {3, 4, 3, 3, 3}, {4}}},
      {"{'stride': [5, 1, 2]}", {{2, 3, 3, 4, 3}, {3, 4, 2, 3, 1}, absent()}},
      {"{'stride': 2, 'dilation': [5, 3, 1], 'output_padding': [4, 2, 0], 'padding': [2, 1, 0]}", {{1, 2, 3, 2, 4}, {2, 2, 2, 3, 2}, {2}}},
      {"", {{2, 5, 2, 4, 3}, {5, 3, 1, 1, 1}, {3}}},
      {"", {{3, 2, 4, 5}, {3, 2, 2, 2, 2}, {2}}},
      {"", {{0, 2, 3, 4, 5}, {2, 5, 2, 3, 3}, {5}}},
      {"{'stride': 2, 'padding': 1}", {{1, 4, 7, 15, 15}, {4, 4, 4, 4, 4}, {4}}, kF32},
  };
  // clang-format on
}

inline std::vector<Line> convolution_cases() {
  constexpr Tolerance kConvolution = {1e-4, 1e-12, 4e-3, 4e-2};
  const auto line = [&](const char* name, Call call, std::vector<Variant> variants,
                        bool growing = false) {
    return Line{name,
                call,
                kReals,
                std::move(variants),
                kConvolution,
                {.types_elsewhere = kHalves,
                 .types_of_cpu = kHalves,
                 .values = Values::ordinary,
                 .inputs = "input weight bias",
                 .growing = growing}};
  };
  return {
      line("conv1d", call_conv<Single, conv1d>, convolutions_1d()),
      line("conv2d", call_conv<Pair, conv2d>, convolutions()),
      line("conv3d", call_conv<Triple, conv3d>, convolutions_3d()),
      line("conv_transpose1d", call_conv_transpose<Single, conv_transpose1d>, transposed_1d(),
           true),
      line("conv_transpose2d", call_conv_transpose<Pair, conv_transpose2d>, transposed_2d(), true),
      line("conv_transpose3d", call_conv_transpose<Triple, conv_transpose3d>, transposed_3d(),
           true)};
}

}  // namespace tenon::conformance
