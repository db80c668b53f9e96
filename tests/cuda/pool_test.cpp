// Pooling and the direct convolution of the cuda plugin against the cpu plugin.
#include <tenon/core/ops/convolution.h>
#include <tenon/core/ops/pooling.h>

#include "cuda/agree.h"

using namespace tenon;
using namespace tenon::test;

BOOST_TEST_GLOBAL_FIXTURE(EmulatedCuda);

namespace {

struct Window {
  Pair kernel;
  MaxPool2dOptions options;
};

// Windows that overlap, leave gaps, reach into the padding and beyond the end.
const std::vector<Window> kWindows = {
    {{2, 2}, {}},
    {{3, 3}, {.stride = {2, 2}, .padding = {1, 1}}},
    {{3, 2}, {.stride = {1, 1}}},
    {{1, 1}, {.stride = {2, 3}}},
    {{3, 3}, {.stride = {2, 2}, .ceil_mode = true}},
    {{2, 3}, {.stride = {3, 2}, .padding = {1, 1}, .ceil_mode = true}},
    {{4, 5}, {.stride = {1, 2}, .padding = {2, 2}}}};
const std::vector<Shape> kImages = {{1, 1, 5, 5}, {2, 3, 9, 8}, {1, 2, 6, 13}, {3, 1, 17, 4}};

}  // namespace

BOOST_AUTO_TEST_CASE(max_pooling) {
  for (DType dtype : {f32, f64})
    for (auto& image : kImages)
      for (auto window : kWindows)
        for (int64_t dilation : {1, 2}) {
          window.options.dilation = {dilation, 1};
          if (image[2] + 2 * window.options.padding.height <
              dilation * (window.kernel.height - 1) + 1)
            continue;
          if (image[3] + 2 * window.options.padding.width < window.kernel.width) continue;
          // Few values: many are equal, and the first of them counts.
          Tensor x = floor(random_values(image, dtype, false));
          require_agreement(
              describe("max_pool2d", dtype, image, window.kernel.shape().str()),
              [&](auto& v) { return max_pool2d(v[0], window.kernel, window.options); }, {x},
              loose(dtype));
        }
}

BOOST_AUTO_TEST_CASE(max_pooling_of_awkward_values) {
  for (int i = 0; i < 5; ++i) {
    Tensor x = random_values({2, 2, 9, 9}, f32, true);
    require_agreement(
        "max_pool2d",
        [](auto& v) {
          return max_pool2d(v[0], {3, 3}, {.stride = {2, 2}, .padding = {1, 1}});
        },
        {x}, 1e-6);
  }
  Tensor lowest = full({1, 1, 4, 4}, -std::numeric_limits<double>::infinity());
  require_agreement(
      "max_pool2d of -inf",
      [](auto& v) {
        return max_pool2d(v[0], {2, 2}, {.padding = {1, 1}});
      },
      {lowest}, 0);
  require_agreement(
      "max_pool2d of nothing",
      [](auto& v) {
        return max_pool2d(v[0], {2, 2});
      },
      {zeros({0, 2, 4, 4})}, 0);
}

BOOST_AUTO_TEST_CASE(average_pooling) {
  for (DType dtype : {f32, f64})
    for (auto& image : kImages)
      for (auto& window : kWindows)
        for (bool count_pad : {false, true}) {
          const AvgPool2dOptions options = {.stride = window.options.stride,
                                            .padding = window.options.padding,
                                            .ceil_mode = window.options.ceil_mode,
                                            .count_include_pad = count_pad};
          if (image[2] + 2 * window.options.padding.height < window.kernel.height ||
              image[3] + 2 * window.options.padding.width < window.kernel.width)
            continue;
          require_agreement(
              describe("avg_pool2d", dtype, image, window.kernel.shape().str()),
              [&](auto& v) { return avg_pool2d(v[0], window.kernel, options); },
              {random_values(image, dtype, false)}, loose(dtype));
        }
}

BOOST_AUTO_TEST_CASE(adaptive_pooling) {
  for (DType dtype : {f32, f64})
    for (auto& image : kImages)
      for (Pair size : {Pair{1, 1}, Pair{2, 3}, Pair{5, 4}, Pair{7, 9}, Pair{0, 2}})
        require_agreement(
            describe("adaptive_avg_pool2d", dtype, image, size.shape().str()),
            [&](auto& v) { return adaptive_avg_pool2d(v[0], size); },
            {random_values(image, dtype, false)}, loose(dtype));
  require_agreement(
      "a large window",
      [](auto& v) {
        return adaptive_avg_pool2d(v[0], {1, 1});
      },
      {random_values({1, 2, 80, 70}, f32, false)}, 2e-5);
}

BOOST_AUTO_TEST_CASE(convolution_without_a_library) {
  struct Case {
    Shape x, weight;
    Conv2dOptions options;
  };
  const std::vector<Case> cases = {
      {{2, 3, 7, 8}, {4, 3, 3, 3}, {}},
      {{1, 1, 5, 5}, {1, 1, 5, 5}, {}},
      {{2, 4, 9, 6}, {6, 2, 3, 2}, {.stride = {2, 1}, .padding = {1, 1}, .groups = 2}},
      {{2, 4, 8, 8}, {4, 1, 3, 3}, {.padding = {2, 2}, .dilation = {2, 2}, .groups = 4}},
      {{3, 2, 6, 7}, {5, 2, 1, 1}, {.stride = {3, 2}}},
      {{0, 2, 6, 7}, {5, 2, 3, 3}, {}},
      {{20, 1, 32, 32}, {2, 1, 3, 3}, {}}};
  for (DType dtype : {f32, f64})
    for (auto& c : cases) {
      Tensor x = random_values(c.x, dtype, false), w = random_values(c.weight, dtype, false),
             b = random_values({c.weight[0]}, dtype, false);
      require_agreement(
          describe("conv2d", dtype, c.x, c.weight.str()),
          [&](auto& v) { return conv2d(v[0], v[1], v[2], c.options); }, {x, w, b},
          10 * loose(dtype));
      require_agreement(
          describe("conv2d without bias", dtype, c.x, c.weight.str()),
          [&](auto& v) { return conv2d(v[0], v[1], Tensor(), c.options); }, {x, w},
          10 * loose(dtype));
    }
  Tensor x = random_values({2, 3, 7, 8}, bf16, false), w = random_values({4, 3, 3, 3}, bf16, false);
  require_same(conv2d(x.to(kGpu), w.to(kGpu)).to(f32), conv2d(x.to(f32), w.to(f32)),
               "conv2d of bf16", 1e-2);
}
