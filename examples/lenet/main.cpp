// Trains the LeNet of model.h on 28 x 28 pictures of ten classes.
#include "common/training.h"
#include "lenet/model.h"

int main(int argc, char** argv) {
  return example::run_classifier<LeNet>(argc, argv,
                                        "Trains LeNet-5 on 28 x 28 pictures of ten classes",
                                        {.epochs = 10, .batch_size = 16, .lr = 0.04});
}
