// Pooling: windows that overlap, leave gaps, reach into the padding and beyond the end.
#pragma once

#include <tenon/conformance/case.h>
#include <tenon/core/ops/pooling.h>

namespace tenon::conformance {

inline Pair pair_or(const json& a, const char* name, Pair absent) {
  return a.contains(name) ? pair_of(a[name]) : absent;
}
inline List call_max_pool2d(const json& a, const List& in) {
  return {max_pool2d(in[0], pair_of(a.at("kernel_size")),
                     {.stride = pair_or(a, "stride", {}),
                      .padding = pair_or(a, "padding", 0),
                      .dilation = pair_or(a, "dilation", 1),
                      .ceil_mode = a.value("ceil_mode", false)})};
}
inline List call_avg_pool2d(const json& a, const List& in) {
  return {avg_pool2d(in[0], pair_of(a.at("kernel_size")),
                     {.stride = pair_or(a, "stride", {}),
                      .padding = pair_or(a, "padding", 0),
                      .ceil_mode = a.value("ceil_mode", false),
                      .count_include_pad = a.value("count_include_pad", true),
                      .divisor_override = a.contains("divisor_override")
                                              ? std::optional(a["divisor_override"].get<int64_t>())
                                              : std::nullopt})};
}
inline List call_adaptive_avg_pool2d(const json& a, const List& in) {
  return {adaptive_avg_pool2d(in[0], pair_of(a.at("output_size")))};
}

// Every window on every image that is large enough for it; `more`: a further argument of some.
inline std::vector<Variant> windows(const char* more, Values values) {
  struct Window {
    int64_t height, width, padding;
    const char* args;
  };
  std::vector<Variant> variants;
  for (const Shape& image : {Shape{1, 1, 5, 5}, Shape{2, 3, 9, 8}, Shape{1, 2, 6, 13},
                             Shape{3, 1, 17, 4}, Shape{2, 4, 5}, Shape{0, 2, 6, 6}})
    for (auto& w : std::initializer_list<Window>{
             {2, 2, 0, "'kernel_size': [2, 2]"},
             {3, 3, 1, "'kernel_size': [3, 3], 'stride': [2, 2], 'padding': [1, 1]"},
             {3, 2, 0, "'kernel_size': [3, 2], 'stride': [1, 1]"},
             {1, 1, 0, "'kernel_size': [1, 1], 'stride': [2, 3]"},
             {3, 3, 0, "'kernel_size': [3, 3], 'stride': [2, 2], 'ceil_mode': true"},
             {2, 3, 1,
              "'kernel_size': [2, 3], 'stride': [3, 2], 'padding': [1, 1], 'ceil_mode': true"},
             {4, 5, 2, "'kernel_size': [4, 5], 'stride': [1, 2], 'padding': [2, 2]"}})
      for (const char* added : {"", more}) {
        const size_t rank = image.size();
        if (image[rank - 2] + 2 * w.padding < 2 * w.height - 1) continue;  // dilated by 2 as well
        if (image[rank - 1] + 2 * w.padding < w.width) continue;
        variants.push_back({"{" + std::string(w.args) + added + "}", {In(image, values)}});
      }
  return variants;
}
inline std::vector<Variant> output_sizes() {
  std::vector<Variant> variants;
  for (const Shape& image :
       {Shape{1, 1, 5, 5}, Shape{2, 3, 9, 8}, Shape{1, 2, 6, 13}, Shape{3, 1, 17, 4}})
    for (const char* size : {"[1, 1]", "[2, 3]", "[5, 4]", "[7, 9]", "[0, 2]"})
      variants.push_back({"{'output_size': " + std::string(size) + "}", {In(image)}});
  variants.push_back({"{'output_size': [1, 1]}", {{1, 2, 80, 70}}});
  return variants;
}
// NaN, infinities, and planes of -inf alone.
inline std::vector<Variant> awkward_images() {
  return {{"{'kernel_size': [3, 3], 'stride': [2, 2], 'padding': [1, 1]}", {{2, 2, 9, 9}}},
          {"{'kernel_size': [2, 2]}", {{3, 3, 8, 8}}},
          {"{'kernel_size': [2, 2], 'padding': [1, 1]}", {In({1, 1, 4, 4}, Values::lowest)}}};
}

inline std::vector<Line> pooling_cases() {
  // clang-format off
  return {
      {"max_pool2d", call_max_pool2d, kReals, windows(", 'dilation': [2, 1]", Values::steps), {.types_of_cpu = kHalves}},
      {"max_pool2d", call_max_pool2d, kReals, awkward_images(), {.difference = 0, .types_of_cpu = kHalves, .no_reference = "the first line has it"}},
      {"avg_pool2d", call_avg_pool2d, kReals, windows(", 'count_include_pad': false", Values::ordinary), kSums, {.types_of_cpu = kHalves}},
      {"adaptive_avg_pool2d", call_adaptive_avg_pool2d, kReals, output_sizes(), kSums, {.types_of_cpu = kHalves, .values = Values::ordinary}},
  };
  // clang-format on
}

}  // namespace tenon::conformance
