#include <cmath>
#include <vector>

#include <tenon/core/ops/pooling.h>
#include <tenon/core/ops/shape.h>

#include "ops/check.h"
#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(pooling)

using namespace tenon;
using namespace tenon::test;

BOOST_AUTO_TEST_CASE(gradients) {
  Tensor x = sample({1, 2, 5, 6});
  for (auto& o : std::initializer_list<MaxPool2dOptions>{
           {},
           {.stride = {1, 2}},
           {.padding = 1},
           {.stride = 2, .padding = {1, 0}, .ceil_mode = true}}) {
    check_gradients(
        [&](auto& v) {
          return square(max_pool2d(v[0], {2, 3}, o));
        },
        {x}, "max_pool2d");
    for (bool count_include_pad : {true, false})
      check_gradients(
          [&](auto& v) {
            return square(avg_pool2d(v[0], {2, 3},
                                     {.stride = o.stride,
                                      .padding = o.padding,
                                      .ceil_mode = o.ceil_mode,
                                      .count_include_pad = count_include_pad}));
          },
          {x}, "avg_pool2d");
  }
  check_gradients(
      [](auto& v) {
        return square(max_pool2d(v[0], {2, 2}, {.stride = {1, 1}, .dilation = {2, 3}}));
      },
      {x}, "dilated");
  for (Pair size : {Pair{1, 1}, Pair{2, 4}, Pair{5, 6}, Pair{7, 3}})
    check_gradients([&](auto& v) { return square(adaptive_avg_pool2d(v[0], size)); }, {x},
                    "adaptive_avg_pool2d");
}

BOOST_AUTO_TEST_CASE(values) {
  Tensor x = arange(0, 16, 1, {.dtype = f64}).reshape({1, 4, 4});
  require_values(max_pool2d(x, {2, 2}), {1, 2, 2}, {5, 7, 13, 15});
  require_values(avg_pool2d(x, {2, 2}), {1, 2, 2}, {2.5, 4.5, 10.5, 12.5});
  require_values(max_pool2d(x, {3, 3}, {.stride = {2, 2}, .ceil_mode = true}), {1, 2, 2},
                 {10, 11, 14, 15});
  require_values(avg_pool2d(x, {3, 3}, {.stride = {2, 2}, .padding = {1, 1}}), {1, 2, 2},
                 {10.0 / 9, 24.0 / 9, 51.0 / 9, 90.0 / 9});
  require_values(
      avg_pool2d(x, {3, 3}, {.stride = {2, 2}, .padding = {1, 1}, .count_include_pad = false}),
      {1, 2, 2}, {2.5, 4, 8.5, 10});
  require_values(adaptive_avg_pool2d(x, {1, 1}), {1, 1, 1}, {7.5});
  require_values(max_pool2d(neg(x) - 1, {2, 2}, {.padding = {1, 1}}), {1, 3, 3},
                 {-1, -2, -4, -5, -6, -8, -13, -14, -16});
  double nan_value = std::nan("");
  require_values(max_pool2d(doubles({1, nan_value, 3, 4}, {1, 2, 2}), {2, 2}), {1, 1, 1},
                 {nan_value});
  require_values(max_pool2d(zeros({0, 2, 4, 4}), {2, 2}), {0, 2, 2, 2}, {});
}

// Windows of 2 x 2 have code of their own. Of equal numbers the first wins, of several NaN the
// last.
BOOST_AUTO_TEST_CASE(halves_take_the_gradient_to_the_element_that_won) {
  for (int64_t width : {2, 7, 36, 75}) {
    const int64_t height = 5, rows = height / 2, columns = width / 2;
    std::vector<float> x(static_cast<size_t>(2 * height * width)), gradient(x.size()), best,
        weights;
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = i % 13 == 5 ? NAN : i % 7 == 3 ? -INFINITY : static_cast<float>(i * 7919 % 4) - 2;
    for (int64_t plane = 0; plane < 2; ++plane)
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c) {
          size_t won = 0;
          float value = -INFINITY;
          for (int64_t tap : {0, 1, 2, 3}) {
            const auto at =
                static_cast<size_t>((plane * height + 2 * r + tap / 2) * width + 2 * c + tap % 2);
            if (tap == 0) won = at;
            if (x[at] > value || std::isnan(x[at])) value = x[at], won = at;
          }
          best.push_back(value);
          weights.push_back(static_cast<float>(best.size()));
          gradient[won] += weights.back();
        }
    Tensor t = tensor(x, {1, 2, height, width}).requires_grad_();
    Tensor y = max_pool2d(t, {2, 2});
    y.backward(tensor(weights, y.shape()));
    const auto found = y.to_vector<float>();
    for (size_t i = 0; i < best.size(); ++i)
      BOOST_TEST((found[i] == best[i] || (std::isnan(found[i]) && std::isnan(best[i]))));
    BOOST_TEST(t.grad().to_vector<float>() == gradient, boost::test_tools::per_element());
  }
}

// A window that lies on padding alone has no value to take: PyTorch gives -inf there and, going
// back, writes to an index outside the plane.
BOOST_AUTO_TEST_CASE(every_window_covers_a_pixel) {
  const std::string text = "max_pool2d: a window lies on padding alone";
  auto pool = [](int64_t n, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
                 bool ceil_mode) {
    return max_pool2d(ones({1, 1, n, n}), {kernel, kernel},
                      {.stride = {stride, stride},
                       .padding = {padding, padding},
                       .dilation = {dilation, dilation},
                       .ceil_mode = ceil_mode});
  };
  require_error<ShapeError>([&] { pool(2, 2, 1, 1, 3, false); }, text);
  require_error<ShapeError>([&] { pool(2, 2, 2, 1, 3, true); }, text);
  require_error<ShapeError>([&] { pool(1, 2, 1, 1, 2, false); }, text);
  require_error<ShapeError>([&] { pool(1, 2, 2, 1, 2, true); }, text);
  require_error<ShapeError>(
      [&] {
        max_pool2d(ones({2, 5, 2}), {1, 2},
                   {.stride = {1, 1}, .padding = {0, 1}, .dilation = {1, 3}});
      },
      text);
  require_error<ShapeError>([&] { pool(1, 3, 1, 1, 2, false); }, "larger than the padded input");
  for (auto& empty : {Shape{1, 1, 0, 3}, Shape{1, 1, 3, 0}}) {
    require_error<ShapeError>(
        [&] {
          max_pool2d(zeros(empty), {2, 2}, {.padding = {1, 1}});
        },
        "are empty");
    require_error<ShapeError>(
        [&] {
          avg_pool2d(zeros(empty), {2, 2}, {.padding = {1, 1}});
        },
        "are empty");
  }
  // Whatever is accepted takes a pixel of the plane in every window, and its gradient reaches
  // pixels alone.
  int64_t accepted = 0, refused = 0;
  for (int64_t n = 1; n <= 4; ++n)
    for (int64_t kernel = 1; kernel <= 6; ++kernel)
      for (int64_t stride = 1; stride <= 5; ++stride)
        for (int64_t padding = 0; padding <= kernel / 2; ++padding)
          for (int64_t dilation = 1; dilation <= 6; ++dilation)
            for (bool ceil_mode : {false, true}) {
              Tensor x = ones({1, n, 1}, {.requires_grad = true});
              try {
                Tensor y = max_pool2d(x, {kernel, 1},
                                      {.stride = {stride, 1},
                                       .padding = {padding, 0},
                                       .dilation = {dilation, 1},
                                       .ceil_mode = ceil_mode});
                y.sum().backward();
                if (y.sum().item() != double(y.numel()) ||
                    x.grad().sum().item() != double(y.numel()))
                  BOOST_ERROR("n " << n << " kernel " << kernel << " stride " << stride
                                   << " padding " << padding << " dilation " << dilation);
                ++accepted;
              } catch (const ShapeError& error) {
                refused += std::string(error.what()).find(text) != std::string::npos;
              }
            }
  BOOST_TEST(accepted > 500);
  BOOST_TEST(refused > 0);
}

BOOST_AUTO_TEST_CASE(bad_input) {
  Tensor x = zeros({1, 1, 4, 4});
  require_error<ShapeError>([&] { max_pool2d(x, {5, 5}); }, "max_pool2d: a kernel of size (5, 5)");
  require_error<ShapeError>(
      [&] {
        avg_pool2d(x, {5, 2});
      },
      "avg_pool2d: a kernel of size (5, 2) is larger than the padded input: shape (1, 1, 4, 4)");
  require_error<ValueError>(
      [&] {
        max_pool2d(x, {2, 2}, {.padding = {2, 0}});
      },
      "at most half the kernel");
  require_error<ValueError>(
      [&] {
        max_pool2d(x, {2, 2}, {.stride = {0, 2}});
      },
      "stride must be two numbers of at least 1");
  require_error<ValueError>(
      [&] {
        avg_pool2d(x, {0, 2});
      },
      "kernel_size must be two numbers of at least 1");
  require_error<ShapeError>([&] { max_pool2d(zeros({4, 4}), {2, 2}); }, "found shape (4, 4)");
  require_error<ValueError>([&] { adaptive_avg_pool2d(x, -1); }, "output_size");
  require_error<DTypeError>([&] { max_pool2d(x.to(i64), {2, 2}); }, "floating");
}

// One running sum of a million elements in f32 would be off by 1e-3.
BOOST_AUTO_TEST_CASE(averages_of_large_windows_are_exact) {
  const int64_t h = kSanitized ? 300 : 2000, w = 1001;
  const Tensor x = full({1, 1, h, w}, 0.3f);
  for (const Tensor& y : {adaptive_avg_pool2d(x, {1, 2}), adaptive_avg_pool2d(x, 1),
                          avg_pool2d(x, {h, w - 1}, {.stride = 1})})
    require_equal(y, full(y.shape(), 0.3f), 1e-7);
}

BOOST_AUTO_TEST_SUITE_END()
