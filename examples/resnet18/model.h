// ResNet-18 (He et al., arXiv:1512.03385) with torchvision's names, and with a first convolution of
// 3 x 3 in place of 7 x 7 and pooling, for small pictures: CIFAR-10's and Fashion-MNIST's.
#pragma once

#include <optional>
#include <vector>

#include <tenon/tenon.h>

namespace nn = tenon::nn;
using tenon::Tensor;

struct BasicBlock : nn::Module<BasicBlock> {
  static constexpr int num_fields = 5;
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  std::optional<nn::Sequential> downsample;  // where the shape changes

  BasicBlock(int64_t in, int64_t out, int64_t stride)
      : conv1(in, out, 3, {.stride = stride, .padding = 1}, {.bias = false}),
        bn1(out),
        conv2(out, out, 3, {.padding = 1}, {.bias = false}),
        bn2(out) {
    if (stride != 1 || in != out)
      downsample.emplace(nn::Conv2d(in, out, 1, {.stride = stride}, {.bias = false}),
                         nn::BatchNorm2d(out));
  }

  Tensor forward(const Tensor& x) {
    const Tensor h = bn2(conv2(relu(bn1(conv1(x)))));
    return relu(h + (downsample ? (*downsample)(x) : x));
  }
};

struct ResNet18 : nn::Module<ResNet18> {
  static constexpr int num_fields = 7;
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  std::vector<BasicBlock> layer1, layer2, layer3, layer4;
  nn::Linear fc;

  ResNet18(int64_t channels, int64_t width)
      : conv1(channels, width, 3, {.padding = 1}, {.bias = false}),
        bn1(width),
        layer1{{width, width, 1}, {width, width, 1}},
        layer2{{width, 2 * width, 2}, {2 * width, 2 * width, 1}},
        layer3{{2 * width, 4 * width, 2}, {4 * width, 4 * width, 1}},
        layer4{{4 * width, 8 * width, 2}, {8 * width, 8 * width, 1}},
        fc(8 * width, 10) {
    for (auto& [name, p] : named_parameters())
      if (p.dim() == 4) nn::init::kaiming_normal_(p, {.mode = nn::init::Fan::out});
  }

  Tensor forward(const Tensor& x) {
    Tensor h = relu(bn1(conv1(x)));
    for (auto* layer : {&layer1, &layer2, &layer3, &layer4})
      for (auto& block : *layer) h = block(h);
    return fc(h.mean({2, 3}));
  }
};
