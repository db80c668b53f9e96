// Other sizes and other places: interpolation, sampling at a grid, channels as pixels.
#pragma once

#include <tenon/conformance/sizes.h>
#include <tenon/core/ops/resampling.h>

namespace tenon::conformance {

inline InterpolateOptions interpolate_options(const json& a) {
  InterpolateOptions o;
  if (a.contains("size")) o.size = shape_of(a["size"]);
  if (a.contains("scale_factor"))
    o.scale_factor = a["scale_factor"].is_array() ? a["scale_factor"].get<std::vector<double>>()
                                                  : std::vector{a["scale_factor"].get<double>()};
  o.mode = a.value("mode", "nearest");
  if (a.contains("align_corners")) o.align_corners = a["align_corners"].get<bool>();
  o.recompute_scale_factor = a.value("recompute_scale_factor", false);
  o.antialias = a.value("antialias", false);
  return o;
}
inline List call_interpolate(const json& a, const List& in) {
  return {interpolate(in[0], interpolate_options(a))};
}
inline List call_upsample(const json& a, const List& in) {
  return {upsample(in[0], interpolate_options(a))};
}
inline List call_grid_sample(const json& a, const List& in) {
  const std::string mode = a.value("mode", "bilinear"),
                    padding_mode = a.value("padding_mode", "zeros");
  return {grid_sample(in[0], in[1],
                      {.mode = mode,
                       .padding_mode = padding_mode,
                       .align_corners = a.value("align_corners", false)})};
}
inline List call_affine_grid(const json& a, const List& in) {
  return {affine_grid(in[0], shape_of(a.at("size")), a.value("align_corners", false))};
}
inline List call_pixel_shuffle(const json& a, const List& in) {
  return {pixel_shuffle(in[0], a.at("upscale_factor").get<int64_t>())};
}
inline List call_pixel_unshuffle(const json& a, const List& in) {
  return {pixel_unshuffle(in[0], a.at("downscale_factor").get<int64_t>())};
}
inline List call_channel_shuffle(const json& a, const List& in) {
  return {channel_shuffle(in[0], a.at("groups").get<int64_t>())};
}

// Each of these arguments with inputs of these shapes.
inline std::vector<Variant> each_resize(std::initializer_list<const char*> args,
                                        std::initializer_list<Shape> shapes, Values values) {
  std::vector<In> inputs;
  for (auto& shape : shapes) inputs.push_back(In(shape, values));
  return every(args, inputs);
}

inline std::vector<Line> resampling_cases() {
  const auto any = Values::any, ordinary_ = Values::ordinary;
  const auto together_with = [](std::vector<Variant> a, const std::vector<Variant>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  auto nearest = each_resize({"{'size': 7}", "{'scale_factor': 2}", "{'scale_factor': 0.4}",
                              "{'scale_factor': 1.7, 'mode': 'nearest-exact'}"},
                             {{2, 3, 5}, {1, 2, 20}}, any);
  nearest = together_with(
      nearest,
      each_resize({"{'size': [7, 4]}", "{'scale_factor': [3, 2]}", "{'scale_factor': [2.3, 0.7]}",
                   "{'size': [3, 8], 'mode': 'nearest-exact'}"},
                  {{1, 2, 4, 5}, {2, 1, 9, 8}, {0, 1, 3, 4}, {1, 2, 91, 70}}, any));
  nearest = together_with(
      nearest, each_resize({"{'size': [3, 5, 2]}", "{'scale_factor': 2}"}, {{1, 2, 2, 3, 4}}, any));
  auto weighted =
      each_resize({"{'size': 7, 'mode': 'linear'}", "{'scale_factor': 1.7, 'mode': 'linear'}",
                   "{'scale_factor': 0.3, 'mode': 'linear', 'align_corners': true}"},
                  {{2, 3, 5}, {1, 2, 20}}, ordinary_);
  weighted = together_with(
      weighted,
      each_resize(
          {"{'size': [7, 4], 'mode': 'bilinear'}", "{'scale_factor': 2, 'mode': 'bilinear'}",
           "{'scale_factor': [1.7, 0.6], 'mode': 'bilinear', 'recompute_scale_factor': true}",
           "{'size': [3, 9], 'mode': 'bilinear', 'align_corners': true}",
           "{'size': [7, 4], 'mode': 'bicubic'}", "{'scale_factor': [2.3, 0.7], 'mode': 'bicubic'}",
           "{'size': [3, 9], 'mode': 'bicubic', 'align_corners': true}",
           "{'size': [3, 4], 'mode': 'bilinear', 'antialias': true}",
           "{'scale_factor': [0.3, 1.7], 'mode': 'bicubic', 'antialias': true}",
           "{'size': [2, 9], 'mode': 'lanczos', 'antialias': true}",
           "{'size': [3, 4], 'mode': 'area'}"},
          {{1, 2, 4, 5}, {2, 1, 9, 8}, {0, 1, 4, 5}, {1, 2, 91, 70}}, ordinary_));
  weighted = together_with(
      weighted, each_resize({"{'size': [3, 5, 2], 'mode': 'trilinear'}",
                             "{'scale_factor': [2, 1, 0.6], 'mode': 'trilinear'}",
                             "{'size': [3, 5, 2], 'mode': 'trilinear', 'align_corners': true}",
                             "{'size': [3, 2, 2], 'mode': 'area'}"},
                            {{1, 2, 2, 3, 4}, {1, 2, 9, 4, 7}}, ordinary_));
  // Places where the slope changes would not have one; `ordinary` numbers do not hit them.
  std::vector<Variant> sampled;
  for (const char* mode : {"bilinear", "bicubic"})
    for (const char* padding : {"zeros", "border", "reflection"})
      for (const char* align : {"true", "false"})
        for (auto& [x, grid] :
             std::initializer_list<std::pair<Shape, Shape>>{{{1, 2, 4, 5}, {1, 3, 2, 2}},
                                                            {{2, 3, 7, 6}, {2, 4, 9, 2}},
                                                            {{1, 2, 4, 5}, {1, 0, 2, 2}}})
          sampled.push_back({"{'mode': '" + std::string(mode) + "', 'padding_mode': '" + padding +
                                 "', 'align_corners': " + align + "}",
                             {ordinary(x), ordinary(grid)}});
  sampled.push_back({"", {ordinary({1, 2, 70, 80}), ordinary({1, 60, 50, 2})}});
  for (const char* padding : {"zeros", "border", "reflection"})
    sampled.push_back({"{'padding_mode': '" + std::string(padding) + "'}",
                       {ordinary({1, 2, 2, 3, 4}), ordinary({1, 2, 1, 3, 3})}});
  std::vector<Variant> picked;
  for (const char* padding : {"zeros", "border", "reflection"})
    for (auto& [x, grid] :
         std::initializer_list<std::pair<Shape, Shape>>{{{1, 2, 4, 5}, {1, 3, 2, 2}},
                                                        {{1, 2, 70, 80}, {1, 60, 50, 2}},
                                                        {{2, 1, 2, 3, 4}, {2, 2, 1, 3, 3}}})
      picked.push_back({"{'mode': 'nearest', 'padding_mode': '" + std::string(padding) + "'}",
                        {ordinary(x), ordinary(grid)}});
  // clang-format off
  return {
      {"interpolate", call_interpolate, kAll, nearest, kExact},
      {"interpolate", call_interpolate, kReals, weighted, kLongSums, {.types_of_cpu = kHalves, .no_reference = "the first line has it", .op = "resample"}},
      {"upsample", call_upsample, kReals, {{"{'scale_factor': 2, 'mode': 'bilinear'}", {ordinary({1, 2, 4, 5})}}, {"{'size': [31, 27], 'mode': 'nearest'}", {ordinary({2, 3, 50, 70})}}}, kLongSums, {.types_of_cpu = kHalves}},
      {"grid_sample", call_grid_sample, kReals, sampled, kLongSums, {.types_of_cpu = kHalves, .inputs = "input grid"}},
      {"grid_sample", call_grid_sample, kReals, picked, kExact, {.difference = 0, .types_of_cpu = kHalves, .no_reference = "the first line has it", .inputs = "input grid"}},
      {"affine_grid", call_affine_grid, kReals, {{"{'size': [2, 1, 3, 4]}", {ordinary({2, 2, 3})}}, {"{'size': [1, 2, 3, 1], 'align_corners': true}", {ordinary({1, 2, 3})}}, {"{'size': [1, 1, 2, 3, 2]}", {ordinary({1, 3, 4})}}, {"{'size': [1, 1, 91, 120], 'align_corners': true}", {ordinary({1, 2, 3})}, kAll, true}}, kSums, {.types_of_cpu = kHalves}},
      {"pixel_shuffle", call_pixel_shuffle, kAll, {{"{'upscale_factor': 2}", {{2, 8, 2, 3}}}, {"{'upscale_factor': 3}", {{9, 1, 2}}}, {"{'upscale_factor': 2}", {{1, 2, 4, 3, 2}}}, {"{'upscale_factor': 2}", {{0, 4, 2, 2}}}, {"{'upscale_factor': 2}", {{2, 12, 31, 40}}}}, kExact},
      {"pixel_unshuffle", call_pixel_unshuffle, kAll, {{"{'downscale_factor': 2}", {{2, 2, 4, 6}}}, {"{'downscale_factor': 3}", {{1, 3, 6}}}, {"{'downscale_factor': 2}", {{1, 2, 3, 2, 2}}}, {"{'downscale_factor': 2}", {{2, 3, 62, 40}}}}, kExact},
      {"channel_shuffle", call_channel_shuffle, kAll, {{"{'groups': 2}", {{2, 6, 2, 2}}}, {"{'groups': 3}", {{1, 6, 5}}}, {"{'groups': 4}", {{2, 8, 31, 40}}}}, kExact},
  };
  // clang-format on
}

}  // namespace tenon::conformance
