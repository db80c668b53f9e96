// Modules print as PyTorch's do, to the character.
#include <sstream>

#include <tenon/modules/activation.h>
#include <tenon/modules/conv.h>
#include <tenon/modules/dropout.h>
#include <tenon/modules/embedding.h>
#include <tenon/modules/flatten.h>
#include <tenon/modules/linear.h>
#include <tenon/modules/loss.h>
#include <tenon/modules/norm.h>
#include <tenon/modules/pool.h>
#include <tenon/modules/resampling.h>
#include <tenon/modules/sequential.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(print_test)

using namespace tenon;

BOOST_AUTO_TEST_CASE(layers) {
  BOOST_TEST(nn::str(nn::Linear(10, 1)) == "Linear(in_features=10, out_features=1, bias=True)");
  BOOST_TEST(nn::str(nn::Linear(10, 1, {.bias = false})) ==
             "Linear(in_features=10, out_features=1, bias=False)");
  BOOST_TEST(nn::str(nn::Conv2d(1, 6, 5)) == "Conv2d(1, 6, kernel_size=(5, 5), stride=(1, 1))");
  BOOST_TEST(
      nn::str(nn::Conv2d(4, 4, {3, 1}, {.stride = 2, .padding = {1, 0}, .dilation = 2, .groups = 2},
                         {.bias = false})) ==
      "Conv2d(4, 4, kernel_size=(3, 1), stride=(2, 2), padding=(1, 0), dilation=(2, 2), "
      "groups=2, bias=False)");
  BOOST_TEST(nn::str(nn::Conv2d(1, 6, 5, {.bias = false})) ==
             "Conv2d(1, 6, kernel_size=(5, 5), stride=(1, 1), bias=False)");
  BOOST_TEST(nn::str(nn::AvgPool2d(3, {.stride = {1, 2}, .padding = 1})) ==
             "AvgPool2d(kernel_size=3, stride=(1, 2), padding=1)");
  BOOST_TEST(nn::str(nn::MaxPool2d(2)) ==
             "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)");
  BOOST_TEST(nn::str(nn::MaxPool2d({2, 3}, {.stride = 1})) ==
             "MaxPool2d(kernel_size=(2, 3), stride=1, padding=0, dilation=1, ceil_mode=False)");
  BOOST_TEST(nn::str(nn::AvgPool2d(2, {.ceil_mode = true})) ==
             "AvgPool2d(kernel_size=2, stride=2, padding=0)");
  BOOST_TEST(nn::str(nn::AdaptiveAvgPool2d(1)) == "AdaptiveAvgPool2d(output_size=1)");
  BOOST_TEST(nn::str(nn::AdaptiveAvgPool2d({1, 2})) == "AdaptiveAvgPool2d(output_size=(1, 2))");
  BOOST_TEST(nn::str(nn::MaxPool1d(3)) ==
             "MaxPool1d(kernel_size=3, stride=3, padding=0, dilation=1, ceil_mode=False)");
  BOOST_TEST(nn::str(nn::MaxPool3d({1, 2, 2})) ==
             "MaxPool3d(kernel_size=(1, 2, 2), stride=(1, 2, 2), padding=0, dilation=1, "
             "ceil_mode=False)");
  BOOST_TEST(nn::str(nn::AvgPool1d(3, {.stride = 2})) ==
             "AvgPool1d(kernel_size=(3,), stride=(2,), padding=(0,))");
  BOOST_TEST(nn::str(nn::AvgPool3d(2)) == "AvgPool3d(kernel_size=2, stride=2, padding=0)");
  BOOST_TEST(nn::str(nn::AdaptiveAvgPool1d(5)) == "AdaptiveAvgPool1d(output_size=5)");
  BOOST_TEST(nn::str(nn::AdaptiveMaxPool3d({1, 2, 3})) ==
             "AdaptiveMaxPool3d(output_size=(1, 2, 3))");
  BOOST_TEST(nn::str(nn::LPPool2d(2, 3)) ==
             "LPPool2d(norm_type=2.0, kernel_size=3, stride=None, ceil_mode=False)");
  BOOST_TEST(nn::str(nn::LPPool2d(1.5, {3, 2}, 2, true)) ==
             "LPPool2d(norm_type=1.5, kernel_size=(3, 2), stride=2, ceil_mode=True)");
  BOOST_TEST(nn::str(nn::MaxUnpool2d(2)) ==
             "MaxUnpool2d(kernel_size=(2, 2), stride=(2, 2), padding=(0, 0))");
  BOOST_TEST(nn::str(nn::Upsample({.scale_factor = {2}, .mode = "bilinear"})) ==
             "Upsample(scale_factor=2.0, mode='bilinear')");
  BOOST_TEST(nn::str(nn::Upsample({.size = {3, 4}})) == "Upsample(size=(3, 4), mode='nearest')");
  BOOST_TEST(nn::str(nn::Upsample({.size = 7})) == "Upsample(size=7, mode='nearest')");
  BOOST_TEST(nn::str(nn::PixelShuffle(3)) == "PixelShuffle(upscale_factor=3)");
  BOOST_TEST(nn::str(nn::PixelUnshuffle(2)) == "PixelUnshuffle(downscale_factor=2)");
  BOOST_TEST(nn::str(nn::ChannelShuffle(4)) == "ChannelShuffle(groups=4)");
  BOOST_TEST(nn::str(nn::BatchNorm1d(3)) ==
             "BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)");
  BOOST_TEST(
      nn::str(nn::BatchNorm2d(
          3,
          {.eps = 1, .momentum = std::nullopt, .affine = false, .track_running_stats = false})) ==
      "BatchNorm2d(3, eps=1.0, momentum=None, affine=False, track_running_stats=False)");
  BOOST_TEST(nn::str(nn::LayerNorm(10)) == "LayerNorm((10,), eps=1e-05, elementwise_affine=True)");
  BOOST_TEST(nn::str(nn::LayerNorm({2, 3}, {.eps = 1e-12})) ==
             "LayerNorm((2, 3), eps=1e-12, elementwise_affine=True)");
  BOOST_TEST(nn::str(nn::Embedding(3, 4)) == "Embedding(3, 4)");
  BOOST_TEST(nn::str(nn::Embedding(3, 4, {.padding_idx = -1})) == "Embedding(3, 4, padding_idx=2)");
  BOOST_TEST(nn::str(nn::Dropout()) == "Dropout(p=0.5, inplace=False)");
  BOOST_TEST(nn::str(nn::Flatten()) == "Flatten(start_dim=1, end_dim=-1)");
  BOOST_TEST(nn::str(nn::Identity()) == "Identity()");
  BOOST_TEST(nn::str(nn::ReLU()) == "ReLU()");
  BOOST_TEST(nn::str(nn::Sigmoid()) == "Sigmoid()");
  BOOST_TEST(nn::str(nn::Tanh()) == "Tanh()");
  BOOST_TEST(nn::str(nn::SiLU()) == "SiLU()");
  BOOST_TEST(nn::str(nn::GELU()) == "GELU(approximate='none')");
  BOOST_TEST(nn::str(nn::Softmax(1)) == "Softmax(dim=1)");
  BOOST_TEST(nn::str(nn::LogSoftmax(-1)) == "LogSoftmax(dim=-1)");
  BOOST_TEST(nn::str(nn::CrossEntropyLoss()) == "CrossEntropyLoss()");
  BOOST_TEST(nn::str(nn::MSELoss()) == "MSELoss()");
}

BOOST_AUTO_TEST_CASE(nested_models_are_indented) {
  struct Features : nn::Module<Features> {
    nn::Conv2d conv{1, 2, 3};
    nn::Sequential tail{nn::Sequential(nn::ReLU()), nn::Tanh()};
  };
  struct Net : nn::Module<Net> {
    Features features;
    nn::Parameter scale = ones({1});
    nn::Linear fc{8, 2};
  };
  Net net;
  const char* expected = R"(Net(
  (features): Features(
    (conv): Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1))
    (tail): Sequential(
      (0): Sequential(
        (0): ReLU()
      )
      (1): Tanh()
    )
  )
  (fc): Linear(in_features=8, out_features=2, bias=True)
))";
  BOOST_TEST(nn::str(net) == expected);
  std::ostringstream out;
  out << net;
  BOOST_TEST(out.str() == expected);
}

BOOST_AUTO_TEST_CASE(lists_join_equal_neighbours) {
  nn::ModuleList list(nn::Linear(1, 2), nn::Linear(1, 2), nn::ReLU());
  BOOST_TEST(nn::str(list) ==
             "ModuleList(\n  (0-1): 2 x Linear(in_features=1, out_features=2, bias=True)\n  (2): "
             "ReLU()\n)");
  BOOST_TEST(nn::str(nn::ModuleList()) == "ModuleList()");
  BOOST_TEST(nn::str(nn::Sequential()) == "Sequential()");
  struct Net : nn::Module<Net> {
    std::vector<nn::ReLU> blocks = std::vector<nn::ReLU>(3);
  };
  BOOST_TEST(nn::str(Net()) == "Net(\n  (blocks): ModuleList(\n    (0-2): 3 x ReLU()\n  )\n)");
}

BOOST_AUTO_TEST_CASE(a_module_may_say_more_of_itself) {
  struct Scale : nn::Module<Scale> {
    nn::Linear inner{1, 1};
    std::string extra_repr() const { return "first=1\nsecond=2"; }
  };
  BOOST_TEST(nn::str(Scale()) ==
             "Scale(\n  first=1\n  second=2\n  (inner): Linear(in_features=1, out_features=1, "
             "bias=True)\n)");
}

BOOST_AUTO_TEST_SUITE_END()
