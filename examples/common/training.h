// Training and evaluating a classifier of 28 x 28 pictures: the part that the examples share.
#pragma once

#include <cmath>
#include <cstdio>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <utility>

#include <tenon/core/base/printable.h>
#include <tenon/tenon.h>

#include "common/options.h"
#include "common/progress.h"

namespace example {

using tenon::Tensor;

struct DataSets {
  tenon::data::TensorDataset train, test;
};

inline DataSets load_data(const Options& o) {
  if (!o.data.empty()) return {tenon::data::mnist(o.data, true), tenon::data::mnist(o.data, false)};
  return {tenon::data::synthetic(10000, {.seed = 2 * o.seed}),
          tenon::data::synthetic(2000, {.seed = 2 * o.seed + 1})};
}

// The share of right answers.
template <class Net>
double accuracy(Net& net, const tenon::data::TensorDataset& set, tenon::Device device) {
  tenon::NoGrad guard;
  net.eval();
  Tensor right = tenon::zeros({}, {.dtype = tenon::DType::i64, .device = device});
  tenon::data::DataLoader loader(set, {.batch_size = 500, .shuffle = false});
  for (auto [x, y] : loader)
    right =
        right + tenon::eq(net(x.to(device)).argmax(1), y.to(device)).to(tenon::DType::i64).sum();
  return static_cast<double>(right.item<int64_t>()) / static_cast<double>(set.size());
}

// The mean loss of `images`. std::runtime_error where it is no finite number: what was learned is
// lost, and more steps cannot mend it.
inline double mean_loss(const Tensor& total, int64_t images, int64_t epoch) {
  const double loss = total.item() / static_cast<double>(images);
  if (!std::isfinite(loss))
    throw std::runtime_error("the loss is " + std::to_string(loss) + " in epoch " +
                             std::to_string(epoch + 1) +
                             ": training has diverged; try a smaller --lr");
  return loss;
}

template <class Net>
void train(Net& net, const tenon::data::TensorDataset& set, const Options& o) {
  tenon::Device device = o.devices.front();
  tenon::data::DataLoader loader(
      set, {.batch_size = o.batch_size, .shuffle = true, .seed = o.seed, .workers = 1});
  tenon::optim::SGD optimizer(net.parameters(),
                              {.lr = o.lr, .momentum = 0.9, .weight_decay = 5e-4});
  Progress progress(o.epochs, set.size());
  for (int64_t epoch = 0; epoch < o.epochs; ++epoch) {
    net.train();
    // A cosine from the given rate to nearly nothing: the last epochs settle.
    optimizer.set_lr(o.lr * 0.5 *
                     (1 + std::cos(3.14159265358979 * static_cast<double>(epoch) /
                                   static_cast<double>(o.epochs))));
    progress.start_epoch();
    Tensor total = tenon::zeros({}, {.device = device});
    int64_t images = 0;
    for (auto [x, y] : loader) {
      optimizer.zero_grad();
      Tensor loss = tenon::cross_entropy(net(x.to(device)), y.to(device));
      loss.backward();
      optimizer.step();
      // Only queued: the loss is read, and so waited for, when it is shown.
      total = total + loss.detach() * static_cast<double>(x.size(0));
      images += x.size(0);
      if (progress.due()) progress.show(images, mean_loss(total, images, epoch));
    }
    progress.end_epoch(mean_loss(total, images, epoch));
  }
}

template <class Net>
void train_and_evaluate(Net& net, const Options& o) {
  if (!o.load.empty()) {
    auto report = tenon::load(o.load, net);
    std::printf("%s\n", report.str().c_str());
  }
  DataSets data = load_data(o);
  if (o.epochs > 0) train(net, data.train, o);
  if (!o.save.empty()) tenon::save(o.save, net);
  std::printf("test accuracy %.4f\n", accuracy(net, data.test, o.devices.front()));
}

// The main function of an example. Net is made after the seed is set; on several devices it is
// wrapped as it is.
template <class Net>
int run(int argc, char** argv, const std::string& description, const Options& defaults) {
  try {
    Parsed parsed = parse(argc, argv, description, defaults);
    if (parsed.exit_status) return std::cout.flush() ? *parsed.exit_status : 1;
    const Options& o = parsed.options;
    tenon::manual_seed(o.seed);
    if (o.devices.size() > 1) {
      tenon::nn::DataParallel net(Net{}, o.devices);
      train_and_evaluate(net, o);
    } else {
      Net net;
      net.to(o.devices.front());
      train_and_evaluate(net, o);
    }
    tenon::synchronize();  // what failed and was not read
    require_output();
    return 0;
  } catch (const std::exception& e) {
    std::fflush(stdout);
    std::fprintf(stderr, "error: %s\n", tenon::printable_lines(e.what()).c_str());
    return 1;
  }
}

}  // namespace example
