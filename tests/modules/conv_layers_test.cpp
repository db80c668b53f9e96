// The layers of convolutions against values that PyTorch gives for the same parameters.
#include <cmath>

#include <tenon/core/random.h>
#include <tenon/tenon.h>

#include "modules/ramp.h"
#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(conv_layers_test)

using namespace tenon;
using namespace tenon::test;

namespace {

const TensorOptions in_f64{.dtype = f64};
const nn::WeightOptions learned{.tensor = in_f64}, without_bias{.bias = false, .tensor = in_f64};

}  // namespace

BOOST_AUTO_TEST_CASE(sequences_and_volumes) {
  require_values(filled(nn::Conv1d(2, 2, 3, {.stride = 2, .padding = 1, .groups = 2}, learned))(
                     ramp({1, 2, 5})),
                 {1, 2, 3}, {-0.18, -0.12, -0.36, -0.4, -0.44, -0.5});
  require_values(
      filled(nn::Conv3d(1, 2, {2, 1, 2}, {.padding = {1, 0, 0}}, learned))(ramp({1, 1, 2, 2, 3})),
      {1, 2, 3, 2, 2},
      {-0.27, -0.32, -0.42, -0.47, -0.16, -0.3,  -0.58, -0.72, -0.63, -0.72, -0.9,  -0.99,
       -0.53, -0.5,  -0.44, -0.41, -0.3,  -0.28, -0.24, -0.22, -0.41, -0.42, -0.44, -0.45});
}

BOOST_AUTO_TEST_CASE(paddings) {
  require_values(
      filled(nn::Conv1d(2, 1, 2, {.padding = "same", .dilation = 3}, without_bias))(ramp({2, 4})),
      {1, 4}, {0.1, 0.32, 0.2, 0.12});
  require_values(
      filled(nn::Conv2d(1, 1, 2, {.padding = 1, .padding_mode = "circular"}, learned))(
          ramp({1, 1, 2, 3})),
      {1, 1, 3, 4},
      {-0.23, -0.13, -0.27, -0.23, -0.11, -0.01, -0.15, -0.11, -0.23, -0.13, -0.27, -0.23});
  require_values(filled(nn::Conv2d(1, 1, {2, 3}, {.padding = "same", .padding_mode = "reflect"},
                                   learned))(ramp({1, 1, 2, 3})),
                 {1, 1, 2, 3}, {0.06, 0.05, -0.04, -0.21, -0.22, -0.31});
  require_values(filled(nn::Conv1d(1, 2, 3, {.padding = 2, .padding_mode = "replicate"}, learned))(
                     ramp({1, 1, 3})),
                 {1, 2, 5}, {0.1, 0.07, 0, -0.09, -0.14, -0.25, -0.25, -0.26, -0.29, -0.31});
  require_values(
      filled(nn::Conv3d(1, 1, {3, 1, 1}, {.padding = {1, 0, 0}, .padding_mode = "reflect"},
                        without_bias))(ramp({1, 2, 1, 2})),
      {1, 2, 1, 2}, {0.44, 0.32, 0.52, 0.4});
}

BOOST_AUTO_TEST_CASE(transposed) {
  require_values(filled(nn::ConvTranspose1d(
                     2, 2, 3, {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2},
                     learned))(ramp({1, 2, 3})),
                 {1, 2, 6},
                 {-0.3, -0.15, -0.34, -0.23, -0.38, -0.41, -0.38, -0.38, -0.39, -0.4, -0.4, -0.4});
  require_values(
      filled(nn::ConvTranspose2d(1, 2, 2, {.stride = 2}, without_bias))(ramp({1, 1, 1, 2})),
      {1, 2, 2, 4},
      {0.25, 0.2, 0.2, 0.16, 0.15, 0.1, 0.12, 0.08, 0.05, 0, 0.04, 0, -0.05, -0.1, -0.04, -0.08});
  require_values(filled(nn::ConvTranspose3d(1, 1, {2, 1, 2}, {.stride = {1, 1, 2}}, learned))(
                     ramp({1, 2, 1, 2})),
                 {1, 3, 1, 4},
                 {-0.25, -0.3, -0.3, -0.34, -0.2, -0.28, -0.28, -0.34, -0.41, -0.44, -0.44, -0.46});
}

BOOST_AUTO_TEST_CASE(the_size_of_a_transposed_result) {
  const auto layer = filled(nn::ConvTranspose2d(1, 1, 2, {.stride = 3}, learned));
  const Tensor x = ramp({1, 1, 1, 2});
  BOOST_TEST(layer(x).shape().str() == "(1, 1, 2, 5)");
  require_values(layer(x, Shape{3, 7}), {1, 1, 3, 7},
                 {-0.25, -0.3, -0.5, -0.3, -0.34, -0.5, -0.5, -0.35, -0.4, -0.5, -0.38,
                  -0.42, -0.5, -0.5, -0.5, -0.5,  -0.5, -0.5, -0.5,  -0.5, -0.5});
  require_equal(layer(x, Shape{1, 1, 3, 7}), layer(x, Shape{3, 7}));
  require_error<ValueError>(
      [&] {
        layer(x, Shape{2, 8});
      },
      "ConvTranspose2d: output_size (2, 8) cannot be of an input of shape (1, 1, 1, 2): dimension "
      "1 "
      "has to be from 5 to 7");
  require_error<ValueError>(
      [&] {
        layer(x, Shape{1, 2, 5});
      },
      "ConvTranspose2d: output_size (1, 2, 5) has to have 2 sizes, or 4");
  const nn::ConvTranspose1d line(1, 1, 2, {.stride = 2});
  BOOST_TEST(line(zeros({1, 3}), Shape{7}).shape().str() == "(1, 7)");
  const nn::ConvTranspose3d volume(1, 1, 2, {.stride = 2});
  BOOST_TEST(volume(zeros({1, 2, 2, 2}), Shape{4, 5, 4}).shape().str() == "(1, 4, 5, 4)");
}

BOOST_AUTO_TEST_CASE(they_print_as_pytorch_prints_them) {
  const auto text = [](const auto& layer) { return nn::str(layer); };
  BOOST_TEST(text(nn::Conv1d(4, 6, 3)) == "Conv1d(4, 6, kernel_size=(3,), stride=(1,))");
  BOOST_TEST(text(nn::Conv1d(
                 4, 6, 3,
                 {.stride = 2, .padding = 1, .dilation = 2, .groups = 2, .padding_mode = "reflect"},
                 {.bias = false})) ==
             "Conv1d(4, 6, kernel_size=(3,), stride=(2,), padding=(1,), dilation=(2,), groups=2, "
             "bias=False, padding_mode=reflect)");
  BOOST_TEST(text(nn::Conv2d(1, 6, 5, {.padding = "same"})) ==
             "Conv2d(1, 6, kernel_size=(5, 5), stride=(1, 1), padding=same)");
  BOOST_TEST(text(nn::Conv2d(1, 6, 5, {.padding = "valid", .padding_mode = "circular"})) ==
             "Conv2d(1, 6, kernel_size=(5, 5), stride=(1, 1), padding=valid, "
             "padding_mode=circular)");
  BOOST_TEST(text(nn::Conv3d(1, 2, {3, 2, 1}, {.padding = {1, 0, 0}})) ==
             "Conv3d(1, 2, kernel_size=(3, 2, 1), stride=(1, 1, 1), padding=(1, 0, 0))");
  BOOST_TEST(text(nn::ConvTranspose1d(4, 6, 3)) ==
             "ConvTranspose1d(4, 6, kernel_size=(3,), stride=(1,))");
  BOOST_TEST(
      text(nn::ConvTranspose2d(
          4, 6, 3, {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2, .dilation = 2},
          {.bias = false})) ==
      "ConvTranspose2d(4, 6, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), dilation=(2, 2), "
      "output_padding=(1, 1), groups=2, bias=False)");
  BOOST_TEST(
      text(nn::ConvTranspose3d(4, 6, 3, {.stride = {3, 2, 1}, .output_padding = {2, 0, 0}})) ==
      "ConvTranspose3d(4, 6, kernel_size=(3, 3, 3), stride=(3, 2, 1), "
      "output_padding=(2, 0, 0))");
}

BOOST_AUTO_TEST_CASE(parameters) {
  manual_seed(3);
  // The largest value is near the bound, which the second size of the weight determines.
  const auto range = [](const Tensor& t, double bound) {
    const double largest = t.detach().abs().max().item<double>();
    BOOST_TEST(largest <= bound);
    BOOST_TEST(largest > 0.95 * bound);
  };
  const nn::Conv1d one(40, 80, 5, {.groups = 2});
  BOOST_TEST(one.weight.shape().str() == "(80, 20, 5)");
  range(one.weight, 0.1);
  range(one.bias, 0.1);
  const nn::Conv3d three(4, 60, {5, 5, 1});
  BOOST_TEST(three.weight.shape().str() == "(60, 4, 5, 5, 1)");
  range(three.weight, 0.1);
  const nn::ConvTranspose2d transposed(6, 16, 5, {.groups = 2}, {.tensor = in_f64});
  BOOST_TEST(transposed.weight.shape().str() == "(6, 8, 5, 5)");
  BOOST_TEST(transposed.bias.shape().str() == "(16,)");
  range(transposed.weight, 1 / std::sqrt(200.0));
  const auto names = transposed.named_parameters();
  BOOST_TEST((names.size() == 2u && names[0].name == "weight" && names[1].name == "bias"));
  BOOST_TEST(nn::ConvTranspose3d(2, 2, 1, {.bias = false}).parameters().size() == 1u);
}

// Ten elements with four weights each, for both outputs.
BOOST_AUTO_TEST_CASE(costs) {
  const auto flops = [](auto layer, const Shape& shape) {
    return nn::summary(layer, ones(shape)).flops;
  };
  BOOST_TEST(flops(nn::ConvTranspose1d(1, 2, 4, {.stride = 3, .output_padding = 2}), {1, 1, 10}) ==
             2 * 10 * 4 * 2);
  BOOST_TEST(flops(nn::ConvTranspose2d(4, 6, {3, 2}, {.stride = 2, .padding = 1, .groups = 2}),
                   {3, 4, 5, 6}) == 2 * (3 * 4 * 5 * 6) * (3 * 3 * 2));
  BOOST_TEST(flops(nn::ConvTranspose3d(1, 1, 2, {.output_padding = {2, 0, 0}, .dilation = 3}),
                   {1, 1, 2, 3, 4}) == 2 * 24 * 8);
  BOOST_TEST(flops(nn::Conv3d(2, 3, 2), {1, 2, 3, 3, 3}) == 2 * (3 * 2 * 2 * 2) * (2 * 8));
}

BOOST_AUTO_TEST_CASE(options_outside_their_range) {
  require_error<ValueError>([] { nn::Conv1d(3, 4, 3, {.groups = 2}); },
                            "Conv1d: in_channels is 3; it has to be a multiple of groups");
  require_error<ValueError>([] { nn::Conv1d(1, 1, 0); },
                            "Conv1d: kernel_size is 0; it has to be at least 1");
  require_error<ValueError>([] { nn::Conv1d(1, 1, 2, {.stride = 2, .padding = "same"}); },
                            "Conv1d: padding is \"same\", which needs a stride of 1, found (2,)");
  require_error<ValueError>([] { nn::Conv2d(1, 1, 2, {.padding_mode = "constant"}); },
                            "Conv2d: padding_mode is \"constant\"; it has to be \"zeros\"");
  require_error<ValueError>(
      [] {
        nn::Conv3d(1, 1, {1, 0, 2});
      },
      "Conv3d: kernel_size is (1, 0, 2); all numbers have to be at least 1");
  require_error<ValueError>([] { nn::ConvTranspose1d(3, 4, 3, {.groups = 2}); },
                            "ConvTranspose1d: in_channels is 3; it has to be a multiple of groups");
  require_error<ValueError>([] { nn::ConvTranspose2d(1, 1, 3, {.output_padding = 1}); },
                            "ConvTranspose2d: output_padding is (1, 1); it has to be smaller than");
  require_error<ShapeError>(
      [] {
        nn::Sequential(nn::Conv1d(2, 4, 3))(zeros({1, 3, 8}));
      },
      "conv1d: an input of shape (1, 3, 8) has 3 channels", "Sequential.0");
}

BOOST_AUTO_TEST_SUITE_END()
