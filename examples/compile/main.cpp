// One call makes a program of a function: how long calls take before and after it.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include <tenon/tenon.h>

#include "../lenet/model.h"

using namespace tenon;

namespace {

struct Network : nn::Module<Network> {
  nn::Linear fc1{512, 256}, fc2{256, 128}, fc3{128, 2};
  Tensor forward(const Tensor& x) { return fc3(relu(fc2(relu(fc1(x))))); }
};

// Returns the time of a call in microseconds: the least of several series.
template <class F>
double time_of(F&& call, int calls) {
  double least = 1e12;
  for (int series = 0; series < 5; ++series) {
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) call().wait();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - began;
    least = std::min(least, took.count() / calls);
  }
  return least;
}

void print(const std::string& name, double plain, double compiled) {
  std::printf("%-36s %10.1f us %10.1f us %8.2f\n", name.c_str(), plain, compiled, compiled / plain);
}

// The answer of a network to one example.
void forward(int calls) {
  Network net;
  net.eval();
  const NoGrad guard;
  auto plain = [&](const Tensor& x) { return net(x); };
  auto compiled = compile(plain);
  const Tensor x = randn({1, 512});
  for (int i = 0; i < 3; ++i) compiled(x);
  print("512-256-128-2, forward of 1", time_of([&] { return plain(x); }, calls),
        time_of([&] { return compiled(x); }, calls));
}

// Whole training steps. Returns what the compiled function says of itself.
template <class Net>
std::string training(const std::string& name, const Tensor& x, int64_t classes, int calls) {
  Net net;
  optim::Adam optimizer(net.parameters(), {.lr = 1e-4});
  const Tensor y = randint(0, classes, {x.size(0)});
  auto plain = [&](const Tensor& images, const Tensor& labels) {
    optimizer.zero_grad();
    Tensor loss = cross_entropy(net(images), labels);
    loss.backward();
    optimizer.step();
    return loss;
  };
  auto compiled = compile(plain);
  for (int i = 0; i < 3; ++i) compiled(x, y);
  print(name, time_of([&] { return plain(x, y); }, calls),
        time_of([&] { return compiled(x, y); }, calls));
  return compiled.explain();
}

}  // namespace

int main(int argc, char** argv) {
  const int calls = argc > 1 ? std::max(1, std::atoi(argv[1])) : 200;
  std::printf("%-36s %13s %13s %8s\n", "each call, and its result waited for", "as always",
              "compiled", "ratio");
  forward(5 * calls);
  training<Network>("512-256-128-2, training step of 1", randn({1, 512}), 2, calls);
  training<Network>("512-256-128-2, training step of 256", randn({256, 512}), 2, calls / 10 + 1);
  const std::string told =
      training<LeNet>("LeNet, training step of 64", randn({64, 1, 28, 28}), 10, calls / 20 + 1);
  std::cout << "\nLeNet: " << told;
}
