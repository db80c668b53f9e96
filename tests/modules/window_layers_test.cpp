// Layers of pooling and resampling against the functions that they call.
#include <tenon/modules/pool.h>
#include <tenon/modules/resampling.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(window_layers_test)

using namespace tenon;
using namespace tenon::test;

namespace {

Tensor rising(const Shape& shape) {
  return arange(0, shape.numel(), 1, {.dtype = f64}).reshape(shape);
}

}  // namespace

BOOST_AUTO_TEST_CASE(pooling_of_lines_and_volumes) {
  const Tensor line = rising({1, 2, 5}), volume = rising({1, 1, 2, 2, 4});
  require_equal(nn::MaxPool1d(2, {.ceil_mode = true})(line),
                max_pool1d(line, 2, {.ceil_mode = true}));
  require_equal(nn::MaxPool3d(2, {.stride = 1})(volume), max_pool3d(volume, 2, {.stride = 1}));
  require_equal(nn::AvgPool1d(3, {.padding = 1})(line), avg_pool1d(line, 3, {.padding = 1}));
  require_equal(nn::AvgPool3d({1, 2, 2}, {.divisor_override = 3})(volume),
                avg_pool3d(volume, {1, 2, 2}, {.divisor_override = 3}));
  require_equal(nn::AdaptiveAvgPool1d(2)(line), adaptive_avg_pool1d(line, 2));
  require_equal(nn::AdaptiveAvgPool3d({1, 2, 3})(volume), adaptive_avg_pool3d(volume, {1, 2, 3}));
  require_equal(nn::AdaptiveMaxPool1d(2)(line), adaptive_max_pool1d(line, 2));
  const Tensor image = rising({1, 2, 4, 4});
  require_equal(nn::AdaptiveMaxPool2d({3, 2})(image), adaptive_max_pool2d(image, {3, 2}));
  require_equal(nn::AdaptiveMaxPool3d({1, 2, 3})(volume), adaptive_max_pool3d(volume, {1, 2, 3}));
  require_equal(nn::LPPool2d(3, 2, 1, true)(image), lp_pool2d(image, 3, 2, 1, true));
  require_equal(nn::LPPool2d(2, 2)(image), lp_pool2d(image, 2, 2));
  require_equal(nn::LPPool1d(2, 2)(line), lp_pool1d(line, 2, 2));
  require_equal(nn::LPPool3d(2, 2, 1)(volume), lp_pool3d(volume, 2, 2, 1));
  require_values(nn::MaxPool2d(2).forward_with_indices(image).indices, {1, 2, 2, 2},
                 {5, 7, 13, 15, 5, 7, 13, 15});
  require_values(nn::MaxPool1d(2).forward_with_indices(line).indices, {1, 2, 2}, {1, 3, 1, 3});
  require_values(nn::MaxPool3d(2).forward_with_indices(volume).indices, {1, 1, 1, 1, 2}, {13, 15});
  require_values(nn::AdaptiveMaxPool2d(1).forward_with_indices(image).indices, {1, 2, 1, 1},
                 {15, 15});
}

BOOST_AUTO_TEST_CASE(unpooling) {
  const Tensor line = rising({1, 2, 5}), image = rising({1, 2, 4, 4}),
               volume = rising({1, 2, 2, 4});
  const auto of_line = max_pool1d_with_indices(line, 2);
  require_values(nn::MaxUnpool1d(2)(of_line.values, of_line.indices, Shape(5)), {1, 2, 5},
                 {0, 1, 0, 3, 0, 0, 6, 0, 8, 0});
  const auto of_image = max_pool2d_with_indices(image, 2);
  require_equal(nn::MaxUnpool2d(2)(of_image.values, of_image.indices),
                max_unpool2d(of_image.values, of_image.indices, 2));
  const auto of_volume = max_pool3d_with_indices(volume, 2);
  require_equal(nn::MaxUnpool3d(2)(of_volume.values, of_volume.indices),
                max_unpool3d(of_volume.values, of_volume.indices, 2));
}

BOOST_AUTO_TEST_CASE(resampling) {
  const Tensor image = rising({1, 4, 2, 4});
  const InterpolateOptions twice{.scale_factor = {2}, .mode = "bilinear"};
  require_equal(nn::Upsample(twice)(image), interpolate(image, twice));
  require_equal(nn::Upsample({.size = {3, 5}})(image), interpolate(image, {.size = {3, 5}}));
  require_equal(nn::PixelShuffle(2)(image), pixel_shuffle(image, 2));
  require_equal(nn::PixelUnshuffle(2)(image), pixel_unshuffle(image, 2));
  require_equal(nn::ChannelShuffle(2)(image), channel_shuffle(image, 2));
}

BOOST_AUTO_TEST_SUITE_END()
