// One call makes a program of a function: how long calls take before and after it, and what a
// training step looks like before and after the passes.
//
//   compile [CALLS] [PREFIX]    also writes PREFIX-recorded.dot and PREFIX-program.dot for Graphviz
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

#include <tenon/tenon.h>

#include "../lenet/model.h"
#include "../resnet18/model.h"

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

// Functions of many elements, written from their parts: what is between the parts stays in the
// cache.
template <class F>
void parts(const std::string& name, F&& plain, int calls) {
  const NoGrad guard;
  auto compiled = compile(plain);
  const Tensor x = randn({1000, 1000});
  for (int i = 0; i < 3; ++i) compiled(x);
  print(name, time_of([&] { return plain(x); }, calls),
        time_of([&] { return compiled(x); }, calls));
}

void from_parts(int calls) {
  parts(
      "gelu of 1 000 000, from its parts",
      [](const Tensor& x) { return 0.5 * x * (1.0 + erf(x * 0.70710678)); }, calls);
  parts(
      "layer norm of rows of 1 000, likewise",
      [](const Tensor& x) {
        const Tensor d = x - x.mean({-1}, true);
        return d * rsqrt((d * d).mean({-1}, true) + 1e-5);
      },
      calls);
  parts(
      "softmax of rows of 1 000, likewise",
      [](const Tensor& x) {
        const Tensor e = exp(x - x.amax({-1}, true));
        return e / e.sum({-1}, true);
      },
      calls);
}

void write(const std::string& path, const std::string& text) {
  if (!(std::ofstream(path) << text)) std::cerr << "cannot write " << path << '\n';
}

// Whole training steps. Returns what the compiled function says of itself, and draws it where there
// is a prefix for the names of the files.
template <class Net>
std::string training(const std::string& name, Net net, const Tensor& x, int64_t classes, int calls,
                     const std::string& prefix = "") {
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
  if (!prefix.empty()) {
    write(prefix + "-recorded.dot", compiled.to_dot(true));
    write(prefix + "-program.dot", compiled.to_dot());
  }
  return compiled.explain();
}

}  // namespace

int main(int argc, char** argv) {
  const int calls = argc > 1 ? std::max(1, std::atoi(argv[1])) : 200;
  std::printf("%-36s %13s %13s %8s\n", "each call, and its result waited for", "as always",
              "compiled", "ratio");
  forward(5 * calls);
  from_parts(calls / 20 + 1);
  training("512-256-128-2, training step of 1", Network(), randn({1, 512}), 2, calls);
  training("512-256-128-2, training step of 256", Network(), randn({256, 512}), 2, calls / 10 + 1);
  training("ResNet-18 of width 8, step of 4", ResNet18(3, 8), randn({4, 3, 32, 32}), 10,
           calls / 40 + 1);
  const std::string told = training("LeNet, training step of 64", LeNet(), randn({64, 1, 28, 28}),
                                    10, calls / 20 + 1, argc > 2 ? argv[2] : "");
  std::cout << "\nLeNet: " << told;
}
