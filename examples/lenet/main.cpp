// LeNet-5 (LeCun et al., "Gradient-based learning applied to document recognition", 1998) with ReLU
// and max pooling.
#include "common/training.h"

namespace nn = tenon::nn;

struct LeNet : nn::Module<LeNet> {
  nn::Conv2d conv1{1, 6, 5, {.padding = 2}}, conv2{6, 16, 5};
  nn::MaxPool2d pool{2};
  nn::Linear fc1{400, 120}, fc2{120, 84}, fc3{84, 10};

  tenon::Tensor forward(const tenon::Tensor& x) {
    tenon::Tensor h = pool(relu(conv1(x)));
    h = pool(relu(conv2(h))).flatten(1);
    return fc3(relu(fc2(relu(fc1(h)))));
  }
};

int main(int argc, char** argv) {
  return example::run_classifier<LeNet>(argc, argv,
                                        "Trains LeNet-5 on 28 x 28 pictures of ten classes",
                                        {.epochs = 10, .batch_size = 16, .lr = 0.04});
}
