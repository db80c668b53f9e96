// Trains a small MLP to tell the arms of a spiral apart, on any device:
//   train [DEVICE] [relu|tanh]
// It ends with an error if the model does not learn.
#include <cmath>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include <tenon/tenon.h>

using namespace tenon;

struct Mlp : nn::Module<Mlp> {
  nn::Linear first{2, 32}, second{32, 32}, last{32, 3};
  bool smooth = false;
  Tensor bend(const Tensor& x) const { return smooth ? tanh(x) : relu(x); }
  Tensor forward(const Tensor& x) { return last(bend(second(bend(first(x))))); }
};

// Points on the three arms of a spiral, and the number of its arm for each.
struct Spiral {
  std::vector<float> points;
  std::vector<int64_t> arms;

  explicit Spiral(int points_on_each_arm) {
    for (int64_t arm = 0; arm < 3; ++arm)
      for (int i = 0; i < points_on_each_arm; ++i) {
        const double r = 0.1 + 0.9 * i / points_on_each_arm;
        const double angle = 4 * r + static_cast<double>(arm) * 2 * 3.14159265358979 / 3;
        points.insert(points.end(), {static_cast<float>(r * std::cos(angle)),
                                     static_cast<float>(r * std::sin(angle))});
        arms.push_back(arm);
      }
  }
  int64_t size() const { return static_cast<int64_t>(arms.size()); }
};

int main(int argc, char** argv) try {
  const Device device(argc > 1 ? argv[1] : "cpu");
  manual_seed(1);
  const Spiral data(100);
  const Tensor x = tensor(data.points, {data.size(), 2}).to(device);
  const Tensor arms = tensor(data.arms), y = arms.to(device);
  Mlp model;
  model.smooth = argc > 2 && std::string(argv[2]) == "tanh";
  model.to(device);
  optim::SGD optimizer(model.parameters(), {.lr = 0.1, .momentum = 0.9});
  for (int step = 1; step <= 300; ++step) {
    optimizer.zero_grad();
    const Tensor loss = cross_entropy(model(x), y);
    loss.backward();
    optimizer.step();
    if (step % 100 == 0) std::cout << "step " << step << ": loss " << loss.item() << "\n";
  }
  const double right = eq(model(x).to("cpu").argmax(1), arms).to(f32).mean().item();
  std::cout << device.str() << ": " << 100 * right << " % of " << data.size() << " points right\n";
  return right > 0.95 ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception& e) {
  std::cerr << e.what() << "\n";
  return EXIT_FAILURE;
}
