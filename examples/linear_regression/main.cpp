// Finds the line that noisy points lie on: all of training in twenty lines.
#include <iostream>

#include <tenon/tenon.h>

using namespace tenon;

int main() {
  manual_seed(1);
  Tensor x = randn({256, 1}), y = 3 * x + 2 + 0.1 * randn({256, 1});

  nn::Linear model(1, 1);
  optim::SGD optimizer(model.parameters(), {.lr = 0.1});
  for (int step = 0; step < 100; ++step) {
    optimizer.zero_grad();
    Tensor loss = mse_loss(model(x), y);
    loss.backward();
    optimizer.step();
    if (step % 20 == 19) std::cout << "step " << step + 1 << "  loss " << loss.item() << '\n';
  }
  std::cout << "y = " << model.weight.item() << " x + " << model.bias.item() << '\n';
}
