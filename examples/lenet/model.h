// LeNet-5 (LeCun et al., "Gradient-based learning applied to document recognition", 1998) with ReLU
// and max pooling.
#pragma once

#include <tenon/tenon.h>

struct LeNet : tenon::nn::Module<LeNet> {
  tenon::nn::Conv2d conv1{1, 6, 5, {.padding = 2}}, conv2{6, 16, 5};
  tenon::nn::MaxPool2d pool{2};
  tenon::nn::Linear fc1{400, 120}, fc2{120, 84}, fc3{84, 10};

  tenon::Tensor forward(const tenon::Tensor& x) {
    tenon::Tensor h = pool(relu(conv1(x)));
    h = pool(relu(conv2(h))).flatten(1);
    return fc3(relu(fc2(relu(fc1(h)))));
  }
};
