// Pooling of lines, images and volumes, with indices, and its reverse.
#pragma once

#include <tenon/conformance/case.h>
#include <tenon/conformance/sizes.h>
#include <tenon/core/ops/arithmetic.h>
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

template <class Size>
MaxPoolOptions<Size> max_options(const json& a) {
  return {.stride = size_of<Size>(a, "stride", {}),
          .padding = size_of<Size>(a, "padding", 0),
          .dilation = size_of<Size>(a, "dilation", 1),
          .ceil_mode = a.value("ceil_mode", false)};
}
template <class Size>
AvgPoolOptions<Size> avg_options(const json& a) {
  return {.stride = size_of<Size>(a, "stride", {}),
          .padding = size_of<Size>(a, "padding", 0),
          .ceil_mode = a.value("ceil_mode", false),
          .count_include_pad = a.value("count_include_pad", true),
          .divisor_override = a.contains("divisor_override")
                                  ? std::optional(a["divisor_override"].get<int64_t>())
                                  : std::nullopt};
}
inline List both(const ValuesIndices& y) { return {y.values, y.indices}; }

template <class Size, Tensor (*Pool)(const Tensor&, Size, const MaxPoolOptions<Size>&)>
List call_max_pool(const json& a, const List& in) {
  return {Pool(in[0], size_of<Size>(a, "kernel_size", 1), max_options<Size>(a))};
}
template <class Size, auto Pool>
List call_max_pool_with_indices(const json& a, const List& in) {
  return both(Pool(in[0], size_of<Size>(a, "kernel_size", 1), max_options<Size>(a)));
}
template <class Size, Tensor (*Pool)(const Tensor&, Size, const AvgPoolOptions<Size>&)>
List call_avg_pool(const json& a, const List& in) {
  return {Pool(in[0], size_of<Size>(a, "kernel_size", 1), avg_options<Size>(a))};
}
template <class Size, auto Pool>
List call_adaptive(const json& a, const List& in) {
  const auto y = Pool(in[0], size_of<Size>(a, "output_size", 1));
  if constexpr (std::is_same_v<decltype(y), const ValuesIndices>)
    return both(y);
  else
    return {y};
}
template <class Size, auto Pool>
List call_lp_pool(const json& a, const List& in) {
  return {Pool(in[0], a.at("norm_type").get<double>(), size_of<Size>(a, "kernel_size", 1),
               size_of<Size>(a, "stride", {}), a.value("ceil_mode", false))};
}
// "places" is how many elements a plane of the result has: indices of a variant are reduced to
// these.
template <class Size, auto Pool>
List call_max_unpool(const json& a, const List& in) {
  const Tensor at = a.contains("places") ? remainder(in[1], a["places"].get<int64_t>()) : in[1];
  return {Pool(in[0], at, size_of<Size>(a, "kernel_size", 1), size_of<Size>(a, "stride", {}),
               size_of<Size>(a, "padding", 0),
               a.contains("output_size") ? shape_of(a["output_size"]) : Shape())};
}

inline std::vector<Line> line_and_volume_pooling_cases() {
  const auto lines = [](Values v) {
    return std::vector<In>{In({2, 3, 11}, v), In({1, 2, 8}, v), In({3, 9}, v), In({0, 2, 8}, v)};
  };
  const auto volumes = [](Values v) {
    return std::vector<In>{In({1, 2, 5, 4, 6}, v), In({1, 1, 4, 3, 4}, v), In({2, 6, 4, 5}, v)};
  };
  const auto planes = [](Values v) {
    return std::vector<In>{In({2, 3, 9, 8}, v), In({1, 1, 5, 6}, v), In({2, 7, 5}, v)};
  };
  const auto max_1d = every({"{'kernel_size': 3}", "{'kernel_size': 3, 'stride': 2, 'padding': 1}",
                             "{'kernel_size': 2, 'stride': 3, 'dilation': 3, 'ceil_mode': true}"},
                            lines(Values::steps));
  const auto max_3d = every(
      {"{'kernel_size': 2}",
       "{'kernel_size': [3, 2, 3], 'stride': [2, 1, 2], 'padding': [1, 1, 0]}",
       "{'kernel_size': [2, 2, 2], 'stride': [3, 2, 3], 'dilation': [1, 2, 1], 'ceil_mode': true}",
       "{'kernel_size': [1, 2, 2]}"},
      volumes(Values::steps));
  const auto max_2d = every({"{'kernel_size': [2, 3], 'stride': [1, 2], 'padding': [1, 0]}",
                             "{'kernel_size': 2, 'stride': 3, 'dilation': 2, 'ceil_mode': true}"},
                            planes(Values::steps));
  const auto avg_1d =
      every({"{'kernel_size': 3}",
             "{'kernel_size': 3, 'stride': 2, 'padding': 1, 'count_include_pad': false}",
             "{'kernel_size': 4, 'stride': 3, 'padding': 2, 'ceil_mode': true}"},
            lines(Values::ordinary));
  const auto avg_3d = every(
      {"{'kernel_size': 2}",
       "{'kernel_size': [3, 2, 3], 'stride': [2, 1, 2], 'padding': [1, 1, 0], "
       "'count_include_pad': false}",
       "{'kernel_size': [2, 3, 2], 'stride': [3, 2, 3], 'padding': [1, 1, 1], 'ceil_mode': true}",
       "{'kernel_size': [2, 3, 2], 'stride': [3, 2, 3], 'padding': [1, 1, 1], 'ceil_mode': true, "
       "'divisor_override': 5}"},
      volumes(Values::ordinary));
  const auto avg_2d =
      every({"{'kernel_size': [2, 3], 'padding': [1, 1], 'divisor_override': -3}",
             "{'kernel_size': 3, 'stride': 2, 'ceil_mode': true, 'divisor_override': 4}"},
            planes(Values::ordinary));
  const auto lp = [&](std::initializer_list<const char*> args, const std::vector<In>& inputs) {
    return every(args, inputs);
  };
  const auto some_lines = std::vector<In>{positive_in({2, 3, 11}), positive_in({3, 9})};
  const auto some_planes = std::vector<In>{positive_in({2, 2, 6, 7}), positive_in({2, 5, 4})};
  const auto some_volumes =
      std::vector<In>{positive_in({1, 2, 4, 5, 3}), positive_in({1, 3, 4, 2})};
  const auto size_1d = [&](Values v) {
    return every({"{'output_size': 3}", "{'output_size': 1}", "{'output_size': 13}"}, lines(v));
  };
  const auto size_2d = [&](Values v) {
    return every({"{'output_size': [3, 4]}", "{'output_size': [1, 1]}", "{'output_size': [7, 9]}"},
                 planes(v));
  };
  const auto size_3d = [&](Values v) {
    return every({"{'output_size': [3, 4, 2]}", "{'output_size': 1}", "{'output_size': [7, 2, 9]}",
                  "{'output_size': [2, 0, 1]}"},
                 volumes(v));
  };
  const auto steps_ = Values::steps, ordinary_ = Values::ordinary;
  // clang-format off
  return {
      {"max_pool1d", call_max_pool<Single, max_pool1d>, kReals, max_1d, kExact, {.types_of_cpu = kHalves}},
      {"max_pool3d", call_max_pool<Triple, max_pool3d>, kReals, max_3d, kExact, {.types_of_cpu = kHalves}},
      {"max_pool1d_with_indices", call_max_pool_with_indices<Single, max_pool1d_with_indices>, kReals, max_1d, kExact, {.types_of_cpu = kHalves}},
      {"max_pool2d_with_indices", call_max_pool_with_indices<Pair, max_pool2d_with_indices>, kReals, max_2d, kExact, {.types_of_cpu = kHalves}},
      {"max_pool3d_with_indices", call_max_pool_with_indices<Triple, max_pool3d_with_indices>, kReals, max_3d, kExact, {.types_of_cpu = kHalves}},
      {"max_unpool1d", call_max_unpool<Single, max_unpool1d>, kReals, {{"{'kernel_size': 8, 'places': 8}", {ordinary({2, 3, 1}), index_in({2, 3, 1}, 8)}}, {"{'kernel_size': 2, 'stride': 3, 'output_size': [16001], 'places': 16001}", {ordinary({1, 5334}), index_in({1, 5334}, 16001)}}}, kExact, {.types_of_cpu = kHalves}},
      {"max_unpool2d", call_max_unpool<Pair, max_unpool2d>, kReals, {{"{'kernel_size': [2, 3], 'places': 6}", {ordinary({2, 3, 1, 1}), index_in({2, 3, 1, 1}, 6)}}, {"{'kernel_size': 2, 'places': 21960}", {ordinary({2, 61, 90}), index_in({2, 61, 90}, 21960)}}}, kExact, {.types_of_cpu = kHalves}},
      {"max_unpool3d", call_max_unpool<Triple, max_unpool3d>, kReals, {{"{'kernel_size': [2, 2, 3], 'places': 12}", {ordinary({2, 1, 1, 1, 1}), index_in({2, 1, 1, 1, 1}, 12)}}, {"{'kernel_size': [1, 3, 2], 'stride': 2, 'places': 100620}", {ordinary({1, 20, 21, 30}), index_in({1, 20, 21, 30}, 100620)}}}, kExact, {.types_of_cpu = kHalves}},
      {"avg_pool1d", call_avg_pool<Single, avg_pool1d>, kReals, avg_1d, kSums, {.types_of_cpu = kHalves}},
      {"avg_pool2d", call_avg_pool<Pair, avg_pool2d>, kReals, avg_2d, kSums, {.types_of_cpu = kHalves, .no_reference = "the first line has it"}},
      {"avg_pool3d", call_avg_pool<Triple, avg_pool3d>, kReals, avg_3d, kSums, {.types_of_cpu = kHalves}},
      {"lp_pool1d", call_lp_pool<Single, lp_pool1d>, kReals, lp({"{'norm_type': 2, 'kernel_size': 3}", "{'norm_type': 1.5, 'kernel_size': 2, 'stride': 3, 'ceil_mode': true}"}, some_lines), kLongSums, {.types_of_cpu = kHalves}},
      {"lp_pool2d", call_lp_pool<Pair, lp_pool2d>, kReals, lp({"{'norm_type': 2, 'kernel_size': [2, 3]}", "{'norm_type': 3, 'kernel_size': 2, 'stride': 1}"}, some_planes), kLongSums, {.types_of_cpu = kHalves}},
      {"lp_pool3d", call_lp_pool<Triple, lp_pool3d>, kReals, lp({"{'norm_type': 2, 'kernel_size': 2}", "{'norm_type': 0.5, 'kernel_size': [2, 3, 1], 'stride': 2}"}, some_volumes), kLongSums, {.types_of_cpu = kHalves}},
      {"adaptive_avg_pool1d", call_adaptive<Single, adaptive_avg_pool1d>, kReals, size_1d(ordinary_), kSums, {.types_of_cpu = kHalves}},
      {"adaptive_avg_pool3d", call_adaptive<Triple, adaptive_avg_pool3d>, kReals, size_3d(ordinary_), kSums, {.types_of_cpu = kHalves}},
      {"adaptive_max_pool1d", call_adaptive<Single, adaptive_max_pool1d>, kReals, size_1d(steps_), kExact, {.types_of_cpu = kHalves}},
      {"adaptive_max_pool2d", call_adaptive<Pair, adaptive_max_pool2d>, kReals, size_2d(steps_), kExact, {.types_of_cpu = kHalves}},
      {"adaptive_max_pool3d", call_adaptive<Triple, adaptive_max_pool3d>, kReals, size_3d(steps_), kExact, {.types_of_cpu = kHalves}},
      {"adaptive_max_pool1d_with_indices", call_adaptive<Single, adaptive_max_pool1d_with_indices>, kReals, size_1d(steps_), kExact, {.types_of_cpu = kHalves}},
      {"adaptive_max_pool2d_with_indices", call_adaptive<Pair, adaptive_max_pool2d_with_indices>, kReals, size_2d(steps_), kExact, {.types_of_cpu = kHalves}},
      {"adaptive_max_pool3d_with_indices", call_adaptive<Triple, adaptive_max_pool3d_with_indices>, kReals, size_3d(steps_), kExact, {.types_of_cpu = kHalves}},
  };
  // clang-format on
}

}  // namespace tenon::conformance
