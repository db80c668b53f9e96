// A perceptron with one hidden layer: the smallest model worth training.
#include "common/training.h"

namespace nn = tenon::nn;

struct Mlp : nn::Module<Mlp> {
  nn::Linear hidden{784, 256}, output{256, 10};

  tenon::Tensor forward(const tenon::Tensor& x) { return output(relu(hidden(x.flatten(1)))); }
};

int main(int argc, char** argv) {
  return example::run_classifier<Mlp>(argc, argv,
                                      "Trains a perceptron on 28 x 28 pictures of ten classes",
                                      {.epochs = 10, .batch_size = 64, .lr = 0.05});
}
