// Small models with their optimizers, for programs that train or are saved.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tenon/tenon.h>

#include "../files.h"

namespace tenon::test::saved {

using Optimizer = std::unique_ptr<optim::Optimizer>;
using MakeOptimizer = std::function<Optimizer(std::vector<Tensor>)>;

struct Perceptron : nn::Module<Perceptron> {
  nn::Linear fc1{6, 8}, fc2{8, 3};
  nn::Dropout drop{0.3};
  Tensor forward(const Tensor& x) { return fc2(drop(relu(fc1(x)))); }
};

struct SmallLeNet : nn::Module<SmallLeNet> {
  nn::Conv2d conv1{1, 3, 3, {.padding = 1}}, conv2{3, 4, 3};
  nn::BatchNorm2d norm{3};
  nn::Dropout drop{0.2};
  nn::Linear fc{4 * 2 * 2, 3};
  Tensor forward(const Tensor& x) {
    Tensor h = max_pool2d(relu(norm(conv1(x))), 2);
    return fc(drop(relu(conv2(h)).flatten(1)));
  }
};

struct Convolutional : nn::Module<Convolutional> {
  nn::Conv2d conv1{1, 3, 3, {.padding = 1}}, conv2{3, 4, 3};
  nn::BatchNorm2d norm{3};
  nn::Linear fc{4 * 2 * 2, 3};
  Tensor forward(const Tensor& x) {
    Tensor h = max_pool2d(relu(norm(conv1(x))), 2);
    return fc(relu(conv2(h)).flatten(1));
  }
};

struct Recurrent : nn::Module<Recurrent> {
  nn::LSTM lstm{5, 7, {.batch_first = true}};
  nn::Linear fc{7, 3};
  Tensor forward(const Tensor& x) {
    const auto out = lstm(x);
    return fc(std::get<0>(out).select(1, -1));
  }
};

struct Attending : nn::Module<Attending> {
  nn::Embedding embed{11, 8};
  nn::TransformerEncoderLayer layer{8, 2, {.dim_feedforward = 16, .dropout = 0.1}};
  nn::Linear fc{8, 3};
  Tensor forward(const Tensor& x) { return fc(layer(embed(x)).mean({1})); }
};

// Two models with the same parameters.
template <class Net>
std::pair<Net, Net> twins() {
  manual_seed(11);
  Net a;
  manual_seed(11);
  Net b;
  return {std::move(a), std::move(b)};
}

template <class Net>
Tensor train_step(Net& net, optim::Optimizer& optimizer, const Tensor& x, const Tensor& y) {
  optimizer.zero_grad();
  Tensor loss = cross_entropy(net(x), y);
  loss.backward();
  optimizer.step();
  return loss;
}

template <class Net>
struct Run {
  Net net;
  Optimizer optimizer;
  explicit Run(const MakeOptimizer& make) : optimizer(make(net.parameters())) {}
  Tensor step(const Tensor& x, const Tensor& y) { return train_step(net, *optimizer, x, y); }
};

struct Batch {
  Tensor x, y;
};
inline std::vector<Batch> batches(const Shape& shape, int count) {
  std::vector<Batch> all;
  for (int i = 0; i < count; ++i) all.push_back({randn(shape), randint(0, 3, {shape[0]})});
  return all;
}

// The names and tensors of a model.
inline std::vector<std::pair<std::string, Tensor>> named(nn::ModuleRef net) {
  const nn::StateDict all = nn::state_dict(net);
  return {all.begin(), all.end()};
}

template <class F>
std::string refusal(F&& f) {
  return error_of<ValueError>(f);
}

template <class O, class Options>
MakeOptimizer making(Options options) {
  return [options](std::vector<Tensor> params) { return std::make_unique<O>(params, options); };
}

}  // namespace tenon::test::saved
