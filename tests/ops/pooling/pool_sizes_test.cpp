// Pooling of lines and volumes, with indices, and its reverse: what the table does not say.
#include <cmath>
#include <limits>

#include <tenon/core/ops/pooling.h>
#include <tenon/core/ops/shape.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(pooling)

using namespace tenon;
using namespace tenon::test;

// In a volume the first of equal elements in the order of memory wins, whatever is pooled first.
BOOST_AUTO_TEST_CASE(ties_in_volumes) {
  const Tensor x = doubles({3, 1, 3, 2, 3, 0, 3, 1, 3, 2, 3, 0}, {1, 4, 1, 3}).requires_grad_();
  const auto y = max_pool3d_with_indices(x, {2, 1, 2}, {.stride = 1});
  require_values(y.values, {1, 3, 1, 2}, {3, 3, 3, 3, 3, 3});
  require_values(y.indices, {1, 3, 1, 2}, {0, 2, 4, 4, 6, 8});
  y.values.backward(doubles({1, 2, 4, 8, 16, 32}, {1, 3, 1, 2}));
  require_values(x.grad(), {1, 4, 1, 3}, {1, 0, 2, 0, 12, 0, 16, 0, 32, 0, 0, 0});
  const double nan = std::nan("");
  const auto last = max_pool3d_with_indices(doubles({nan, 5, 1, nan, 2, 3, 4, 9}, {1, 2, 2, 2}), 2);
  require_values(last.values, {1, 1, 1, 1}, {nan});
  require_values(last.indices, {1, 1, 1, 1}, {3});
}

// Of whole planes several means are taken together, with the bits of each alone.
BOOST_AUTO_TEST_CASE(means_of_whole_planes) {
  for (DType dtype : {f32, f64})
    for (int64_t side : {1, 3, 7, 20, 70}) {
      const Tensor x = sample({1, 19, side, side}).to(dtype), y = adaptive_avg_pool2d(x, {1, 1});
      for (int64_t i = 0; i < 19; ++i) {
        const Tensor plane = x.narrow(1, i, 1);
        const Tensor alone = adaptive_avg_pool2d(plane.contiguous(), {1, 1});
        BOOST_TEST_REQUIRE(equal(y.narrow(1, i, 1), alone), side);
        BOOST_TEST(std::abs(alone.item() - mean(plane.to(f64)).item()) < 1e-6);
      }
    }
}

// Where windows are of different sizes, too.
BOOST_AUTO_TEST_CASE(ties_in_adaptive_windows) {
  const Tensor x = doubles({1, 4, 4, 2, 4}, {1, 5}).requires_grad_();
  const auto y = adaptive_max_pool1d_with_indices(x, 3);
  require_values(y.values, {1, 3}, {4, 4, 4});
  require_values(y.indices, {1, 3}, {1, 1, 4});
  y.values.backward(doubles({1, 2, 4}, {1, 3}));
  require_values(x.grad(), {1, 5}, {0, 3, 0, 0, 4});
  const double low = -std::numeric_limits<double>::infinity();
  const auto lowest = adaptive_max_pool2d_with_indices(full({1, 3, 5}, low, f64), {2, 2});
  require_values(lowest.values, {1, 2, 2}, {low, low, low, low});
  require_values(lowest.indices, {1, 2, 2}, {0, 2, 5, 7});
}

BOOST_AUTO_TEST_CASE(unpooling_puts_back_what_was_pooled) {
  const Tensor x = doubles({1, 5, 2, 7, 3, 4}, {1, 6});
  const auto pooled = max_pool1d_with_indices(x, 2);
  require_values(max_unpool1d(pooled.values, pooled.indices, 2), {1, 6}, {0, 5, 0, 7, 0, 4});
  require_values(max_unpool1d(pooled.values, pooled.indices, 2, {}, 0, {7}), {1, 7},
                 {0, 5, 0, 7, 0, 4, 0});
  require_error<ValueError>([&] { max_unpool1d(pooled.values, pooled.indices, 2, {}, 0, {8}); },
                            "max_unpool1d: output_size (8,) must lie between 4 and 8");
  require_error<ValueError>(
      [&] {
        max_unpool1d(pooled.values, pooled.indices, 2, {}, 0, {8, 2});
      },
      "max_unpool1d: output_size (8, 2) must have 1 numbers");
  require_error<ShapeError>([&] { max_unpool1d(pooled.values, pooled.indices.narrow(1, 0, 2), 2); },
                            "max_unpool1d: indices have shape (1, 2)");
  require_error<DTypeError>([&] { max_unpool1d(pooled.values, pooled.values, 2); }, "max_unpool1d",
                            "indices");
  require_error<IndexError>([&] { max_unpool1d(pooled.values, pooled.indices + 3, 2).wait(); },
                            "index 6", "outside [0, 6)");
}

BOOST_AUTO_TEST_CASE(divisors) {
  const Tensor x = arange(0, 5, 1, f64).reshape({1, 5});
  // The last window has one element and nothing of the padding.
  require_values(avg_pool1d(x, 3, {.stride = 2, .padding = 1, .ceil_mode = true}), {1, 3},
                 {1.0 / 3, 2, 7.0 / 3});
  const Tensor plane = ones({1, 4, 4}, f64);
  require_values(avg_pool2d(plane, 3, {.stride = 2, .ceil_mode = true, .divisor_override = 2}),
                 {1, 2, 2}, {4.5, 3, 3, 2});
  require_values(avg_pool2d(plane, 2, {.padding = 1, .divisor_override = -4}), {1, 3, 3},
                 {-0.25, -0.5, -0.25, -0.5, -1, -0.5, -0.25, -0.5, -0.25});
  require_values(avg_pool3d(ones({1, 2, 2, 2}, f64), 2,
                            {.stride = 1, .padding = 1, .count_include_pad = false}),
                 {1, 3, 3, 3}, std::vector<double>(27, 1));
  require_error<ValueError>([&] { avg_pool2d(plane, 2, {.divisor_override = 0}); },
                            "avg_pool2d: divisor_override must not be 0");
}

BOOST_AUTO_TEST_CASE(norms) {
  const Tensor x = doubles({3, -4, 0, 0}, {1, 4}).requires_grad_();
  const Tensor y = lp_pool1d(x, 2, 2);
  require_values(y, {1, 2}, {5, 0});
  y.backward(ones({1, 2}, f64));
  require_values(x.grad(), {1, 4}, {0.6, -0.8, 0, 0});
  const double inf = std::numeric_limits<double>::infinity();
  require_values(lp_pool1d(x, inf, 2), {1, 2}, {4, 0});
  require_values(lp_pool1d(x, -inf, 2), {1, 2}, {3, 0});
  require_error<ValueError>([&] { lp_pool1d(x, 0, 2); }, "lp_pool1d: norm_type must not be 0");
}

BOOST_AUTO_TEST_CASE(errors_name_the_function) {
  const Tensor line = zeros({2, 3, 4}), volume = zeros({1, 2, 3, 4, 5});
  require_error<ShapeError>([&] { max_pool1d(zeros({4}), 2); },
                            "max_pool1d: needs an input (n, c, l) or (c, l), found shape (4,)");
  require_error<ShapeError>([&] { avg_pool3d(zeros({3, 4, 5}), 2); }, "avg_pool3d: needs an input");
  require_error<ShapeError>([&] { max_pool1d(line, 5); }, "max_pool1d: a kernel of size (5,)",
                            "shape (2, 3, 4)");
  require_error<ShapeError>([&] { avg_pool3d(volume, 4); }, "avg_pool3d: a kernel of size");
  require_error<ShapeError>(
      [&] {
        max_pool1d(zeros({1, 1, 2}), 2, {.stride = 1, .padding = 1, .dilation = 3});
      },
      "max_pool1d: a window lies on padding alone");
  require_error<ShapeError>(
      [&] {
        avg_pool1d(zeros({1, 0}), 1);
      },
      "avg_pool1d: the lines of an input of shape (1, 1, 0) are empty");
  require_error<ShapeError>(
      [&] {
        adaptive_avg_pool3d(zeros({1, 2, 0, 2}), 1);
      },
      "adaptive_avg_pool3d: the volumes");
  require_error<ShapeError>(
      [&] {
        adaptive_max_pool2d(zeros({1, 2, 0}), 1);
      },
      "adaptive_max_pool2d: the planes");
  require_error<ValueError>([&] { max_pool1d(line, 0); },
                            "max_pool1d: kernel_size must be one number of at least 1, found (0,)");
  require_error<ValueError>(
      [&] {
        avg_pool3d(volume, 2, {.padding = {0, 2, 0}});
      },
      "avg_pool3d: padding (0, 2, 0) must be at most half");
  require_error<ValueError>(
      [&] {
        max_pool3d(volume, 2, {.stride = {1, 0, 1}});
      },
      "max_pool3d: stride must be three numbers of at least 1");
  require_error<ValueError>([&] { adaptive_max_pool1d(line, -1); },
                            "adaptive_max_pool1d: output_size");
  require_error<ValueError>([&] { max_pool1d(Tensor(), 1); }, "max_pool1d", "undefined");
  require_error<DTypeError>([&] { max_pool3d(volume.to(i64), 2); },
                            "max_pool3d: needs a floating input, found i64");
  require_error<DTypeError>([&] { lp_pool2d(zeros({2, 3, 3}, i32), 2, 2); }, "lp_pool2d: needs");
}

BOOST_AUTO_TEST_CASE(results_without_elements) {
  const Tensor x = ones({2, 3, 4, 5}).requires_grad_();
  const auto y = adaptive_max_pool2d_with_indices(x, {0, 2});
  BOOST_TEST(y.values.shape() == (Shape{2, 3, 0, 2}));
  BOOST_TEST(y.indices.shape() == (Shape{2, 3, 0, 2}));
  y.values.sum().backward();
  require_equal(x.grad(), zeros({2, 3, 4, 5}));
  BOOST_TEST(adaptive_avg_pool3d(ones({2, 3, 4, 5}), {2, 0, 3}).shape() == (Shape{2, 2, 0, 3}));
}

BOOST_AUTO_TEST_SUITE_END()
