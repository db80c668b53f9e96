// interpolate, grid_sample and their like: values at the edges, and errors.
#include <cmath>
#include <limits>

#include <tenon/core/ops/arithmetic.h>
#include <tenon/core/ops/pooling.h>
#include <tenon/core/ops/resampling.h>
#include <tenon/core/ops/shape.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(pooling)

using namespace tenon;
using namespace tenon::test;

namespace {

const double kInf = std::numeric_limits<double>::infinity();

Tensor square_of_four() { return arange(0, 4, 1, f64).reshape({1, 1, 2, 2}); }

}  // namespace

BOOST_AUTO_TEST_CASE(interpolated_values) {
  const Tensor x = square_of_four();
  require_values(interpolate(x, {.scale_factor = {2}, .mode = "bilinear"}), {1, 1, 4, 4},
                 {0, 0.25, 0.75, 1, 0.5, 0.75, 1.25, 1.5, 1.5, 1.75, 2.25, 2.5, 2, 2.25, 2.75, 3});
  require_values(interpolate(x, {.size = 3, .mode = "bilinear", .align_corners = true}),
                 {1, 1, 3, 3}, {0, 0.5, 1, 1, 1.5, 2, 2, 2.5, 3});
  require_values(interpolate(x, {.size = {2, 4}}), {1, 1, 2, 4}, {0, 0, 1, 1, 2, 2, 3, 3});
  const Tensor line = arange(0, 8, 1, f64).reshape({1, 1, 8});
  require_values(interpolate(line, {.scale_factor = {0.4}, .mode = "linear"}), {1, 1, 3},
                 {0.75, 3.25, 5.75});
  require_values(interpolate(line, {.size = 2, .mode = "area"}), {1, 1, 2}, {1.5, 5.5});
}

// Without a change the result is a copy all the same, which may be written to.
BOOST_AUTO_TEST_CASE(the_same_size_is_a_copy) {
  const Tensor x = square_of_four();
  for (const char* mode : {"nearest", "nearest-exact", "bilinear", "bicubic"}) {
    Tensor y = interpolate(x, {.size = 2, .mode = mode});
    require_equal(y, x);
    y.zero_();
    require_values(x, {1, 1, 2, 2}, {0, 1, 2, 3});
  }
}

// An infinite element reaches those that are made of it, and no other becomes NaN.
BOOST_AUTO_TEST_CASE(infinite_elements_stay_where_they_are) {
  const Tensor x = doubles({1, 2, 3, 4, 5, 6, 7, kInf}, {1, 1, 1, 8});
  const Tensor four = interpolate(x, {.size = {1, 4}, .mode = "bilinear", .antialias = true});
  require_values(isfinite(four).to(f64), {1, 1, 1, 4}, {1, 1, 1, 0});
  const Tensor y = interpolate(x, {.size = {1, 3}, .mode = "bilinear", .antialias = true});
  BOOST_TEST(y[0][0][0][2].item() == kInf);
  const Tensor places = doubles({1, 0, 0.75, 0, -1, 0}, {1, 1, 3, 2});
  for (const char* padding : {"zeros", "border", "reflection"})
    require_values(grid_sample(x, places, {.padding_mode = padding, .align_corners = true}),
                   {1, 1, 1, 3}, {kInf, kInf, 1});
}

BOOST_AUTO_TEST_CASE(sampled_values) {
  const Tensor x = square_of_four();
  const double nan = std::nan("");
  // The middle, a corner, far away, and nowhere.
  const Tensor grid = doubles({0, 0, 1, 1, 9, -9, nan, 0}, {1, 1, 4, 2});
  require_values(grid_sample(x, grid), {1, 1, 1, 4}, {1.5, 0.75, 0, 0});
  require_values(grid_sample(x, grid, {.align_corners = true}), {1, 1, 1, 4}, {1.5, 3, 0, 0});
  require_values(grid_sample(x, grid, {.mode = "nearest", .align_corners = true}), {1, 1, 1, 4},
                 {0, 3, 0, 0});
  require_values(grid_sample(x, grid, {.padding_mode = "border"}).narrow(3, 0, 3), {1, 1, 1, 3},
                 {1.5, 3, 1});
}

// Wherever it lies, no place makes an index that is out of range.
BOOST_AUTO_TEST_CASE(any_number_is_a_place) {
  const Tensor x = sample({1, 2, 3, 4}),
               far = doubles({kInf, -kInf, 1e300, -1e300, std::nan(""), 0}, {1, 1, 3, 2});
  for (DType dtype : {f64, f32, f16})
    for (const char* mode : {"bilinear", "nearest", "bicubic"})
      for (const char* padding : {"zeros", "border", "reflection"})
        for (bool align : {false, true}) {
          const Tensor grid = far.to(dtype).detach().requires_grad_();
          const Tensor y = grid_sample(
              x.to(dtype), grid, {.mode = mode, .padding_mode = padding, .align_corners = align});
          BOOST_TEST(y.shape() == (Shape{1, 2, 1, 3}));
          y.sum().backward();
          grid.grad().wait();
          if (padding == std::string("zeros") && mode != std::string("bicubic"))
            require_equal(y.to(f64), zeros({1, 2, 1, 3}));
        }
}

// Infinitely far is beyond the border: nothing is there, or the element of the border is, whatever
// direction it lies in. Nowhere does a step to the side change anything.
BOOST_AUTO_TEST_CASE(infinite_places) {
  const Tensor x = doubles({1, 2, 3, 4}, {1, 1, 2, 2}),
               far = doubles({-kInf, -1, kInf, -1, -1, kInf, kInf, kInf}, {1, 1, 4, 2});
  for (DType dtype : {f64, f32})
    for (const char* mode : {"bilinear", "nearest"})
      for (bool border : {false, true}) {
        Tensor image = x.to(dtype).detach().requires_grad_(),
               grid = far.to(dtype).detach().requires_grad_();
        const Tensor y = grid_sample(
            image, grid,
            {.mode = mode, .padding_mode = border ? "border" : "zeros", .align_corners = true});
        const std::vector<double> corners =
            border ? std::vector<double>{1, 2, 3, 4} : std::vector<double>(4, 0);
        BOOST_TEST(y.detach().to_vector<double>() == corners);
        y.sum().backward();
        BOOST_TEST(image.grad().to_vector<double>() == std::vector<double>(4, border ? 1 : 0));
        const Tensor along = grid.grad().select(3, 0);
        BOOST_TEST(along[0][0].slice(0, 0, 2).to_vector<double>() == std::vector<double>(2, 0));
      }
}

BOOST_AUTO_TEST_CASE(the_nearest_element_has_no_slope) {
  const Tensor x = sample({1, 2, 3, 4}), grid = sample({1, 2, 2, 2});
  const Tensor leaf = grid.detach().requires_grad_();
  grid_sample(x, leaf, {.mode = "nearest"}).sum().backward();
  require_equal(leaf.grad(), zeros({1, 2, 2, 2}));
}

BOOST_AUTO_TEST_CASE(shuffled_channels) {
  const Tensor x = arange(0, 8, 1, f64).reshape({1, 4, 1, 2});
  require_values(pixel_shuffle(x, 2), {1, 1, 2, 4}, {0, 2, 1, 3, 4, 6, 5, 7});
  require_equal(pixel_unshuffle(pixel_shuffle(x, 2), 2), x);
  require_values(channel_shuffle(x, 2), {1, 4, 1, 2}, {0, 1, 4, 5, 2, 3, 6, 7});
  require_error<ShapeError>([&] { pixel_shuffle(x, 3); },
                            "pixel_shuffle: the 4 channels of shape (1, 4, 1, 2)");
  require_error<ShapeError>([&] { pixel_unshuffle(x, 2); },
                            "pixel_unshuffle: height and width of shape (1, 4, 1, 2)");
  require_error<ShapeError>([&] { channel_shuffle(x, 3); }, "channel_shuffle: the 4 channels");
  require_error<ShapeError>([&] { pixel_shuffle(zeros({4, 4}), 2); }, "pixel_shuffle: needs");
  require_error<ValueError>([&] { pixel_shuffle(x, 0); }, "upscale_factor must be from 1");
  require_error<ValueError>([&] { channel_shuffle(x, 0); }, "groups must be positive");
  require_error<ShapeError>(
      [&] {
        pixel_unshuffle(zeros({2, 0, 0}), 1LL << 30);
      },
      "pixel_unshuffle", "more elements");
}

BOOST_AUTO_TEST_CASE(bad_arguments_of_interpolate) {
  const Tensor x = zeros({1, 2, 4, 5});
  const auto refuse = [&](const InterpolateOptions& options, const auto&... parts) {
    require_error<ValueError>([&] { interpolate(x, options); }, "interpolate: ", parts...);
  };
  refuse({}, "either size or scale_factor, found neither");
  refuse({.size = 3, .scale_factor = {2}}, "found both");
  refuse({.size = {3, 4, 5}}, "size must be one number or 2");
  refuse({.scale_factor = {1, 2, 3}}, "scale_factor must be one number or 2");
  refuse({.size = {3, 0}}, "size must be two numbers of at least 1");
  refuse({.scale_factor = {0.1}}, "scale_factor 0.1 makes a size of 4");
  refuse({.scale_factor = {-1}}, "scale_factor must be positive");
  refuse({.scale_factor = {1e12}}, "from 1 to 2^31 - 1");
  refuse({.scale_factor = {std::nan("")}}, "scale_factor must be positive");
  refuse({.size = 3, .mode = "linear"}, "mode must be", "\"bilinear\"", "found \"linear\"");
  refuse({.size = 3, .mode = "nearest", .align_corners = false}, "align_corners is for");
  refuse({.size = 3, .mode = "nearest", .antialias = true}, "antialias is for");
  refuse({.size = 3, .mode = "lanczos"}, "needs antialias");
  refuse({.size = 3, .recompute_scale_factor = true}, "recompute_scale_factor makes no sense");
  require_error<ShapeError>(
      [&] {
        interpolate(zeros({2, 3}), {.size = 3});
      },
      "interpolate: needs an input", "found shape (2, 3)");
  require_error<ShapeError>(
      [&] {
        interpolate(zeros({1, 2, 0, 3}), {.size = 3});
      },
      "has no element in space");
  require_error<ShapeError>(
      [&] {
        interpolate(x, {.size = {2147483647, 2147483647}});
      },
      "interpolate", "more elements");
  require_error<DTypeError>([&] { interpolate(x.to(u8), {.size = 3, .mode = "bilinear"}); },
                            "interpolate: mode \"bilinear\" needs a floating input, found u8");
  require_error<ValueError>([&] { upsample(Tensor(), {.size = 3}); }, "upsample", "undefined");
}

BOOST_AUTO_TEST_CASE(bad_arguments_of_grids) {
  const Tensor x = zeros({2, 3, 4, 5}), grid = zeros({2, 6, 7, 2});
  require_error<ValueError>([&] { grid_sample(x, grid, {.mode = "area"}); },
                            "grid_sample: mode must be");
  require_error<ValueError>([&] { grid_sample(x, grid, {.padding_mode = "mirror"}); },
                            "grid_sample: padding_mode must be");
  require_error<ShapeError>([&] { grid_sample(zeros({3, 4, 5}), grid); }, "needs an input");
  require_error<ShapeError>(
      [&] {
        grid_sample(x, zeros({1, 6, 7, 2}));
      },
      "the grid must be (2, h', w', 2), found (1, 6, 7, 2)");
  require_error<ShapeError>([&] { grid_sample(x, zeros({2, 6, 7, 3})); }, "the grid must be");
  require_error<ShapeError>([&] { grid_sample(zeros({2, 3, 0, 5}), grid); }, "no element");
  require_error<DTypeError>([&] { grid_sample(x, grid.to(f64)); },
                            "the input is f32, the grid f64");
  require_error<DTypeError>([&] { grid_sample(x.to(i64), grid); }, "needs a floating input");
  require_error<ValueError>(
      [&] {
        grid_sample(zeros({2, 3, 2, 4, 5}), zeros({2, 1, 6, 7, 3}), {.mode = "bicubic"});
      },
      "mode must be \"bilinear\" or \"nearest\"");
  require_error<ValueError>([&] { affine_grid(zeros({1, 2, 3}), {3, 4}); }, "size must be");
  require_error<ValueError>(
      [&] {
        affine_grid(zeros({1, 2, 3}), {1, 1, 0, 4});
      },
      "size must be positive throughout");
  require_error<ShapeError>(
      [&] {
        affine_grid(zeros({1, 3, 4}), {1, 1, 3, 4});
      },
      "theta must have shape (1, 2, 3)");
  require_error<DTypeError>(
      [&] {
        affine_grid(zeros({1, 2, 3}, i64), {1, 1, 3, 4});
      },
      "needs a floating theta");
}

BOOST_AUTO_TEST_SUITE_END()
