// Training, the part that the examples share, and what classifiers of pictures share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <tenon/tenon.h>

#include "common/options.h"
#include "common/progress.h"

namespace example {

using tenon::Tensor;

// The mean loss of `count` examples. std::runtime_error where it is no finite number: what was
// learned is lost, and more steps cannot mend it.
inline double mean_loss(const Tensor& total, int64_t count, int64_t epoch) {
  const double loss = total.item() / static_cast<double>(count);
  if (!std::isfinite(loss))
    throw std::runtime_error("the loss is " + std::to_string(loss) + " in epoch " +
                             std::to_string(epoch + 1) +
                             ": training has diverged; try a smaller --lr");
  return loss;
}

struct Recipe {
  std::string unit = "images";  // what the examples are
  bool by_step = false;         // the learning rate falls at each step, not at each epoch
  int64_t warmup = 0;           // steps in which it rises to o.lr
  double max_norm = 0;          // of all gradients together; 0: any
  bool bf16 = false;            // products of the forward and backward pass in bf16
};

// The checkpoints of a training, if there are to be some.
class Checkpoints {
 public:
  // Goes on from the newest in o.resume.
  Checkpoints(const Options& o, tenon::Checkpoint& run) : run_(run) {
    if (o.resume.empty()) return;
    manager_.emplace(o.resume, tenon::CheckpointManagerOptions{
                                   .every_minutes = 5, .keep = 2, .on_signals = true});
    if (manager_->resume(run))
      std::printf("goes on after step %lld\n", static_cast<long long>(run.step));
  }
  // Counts a step. std::runtime_error where the program was asked to end.
  void step() {
    if (!manager_)
      ++run_.step;
    else if (!manager_->step(run_))
      throw std::runtime_error("stopped by a signal after step " + std::to_string(run_.step) +
                               "; the same command goes on from there");
  }
  void end_epoch() {
    run_.user = {};
    ++run_.epoch;
    if (manager_) manager_->save(run_);
  }

 private:
  tenon::Checkpoint& run_;
  std::optional<tenon::CheckpointManager> manager_;
};

// Trains for o.epochs by steps of `optimizer`: `loss(x, y)` is the mean loss of a batch, which is
// on the first device. The learning rate falls from o.lr to nearly nothing by a cosine, so the last
// epochs settle.
template <class Net, class DataSet, class Loss>
void train(Net& net, tenon::optim::Optimizer& optimizer, const DataSet& set, const Options& o,
           const Recipe& recipe, Loss loss_of) {
  const tenon::Device device = o.devices.front();
  tenon::data::DataLoader loader(
      set, {.batch_size = o.batch_size, .shuffle = true, .seed = o.seed, .workers = 1});
  tenon::Checkpoint run{.model = net, .optimizer = optimizer, .loader = loader};
  Checkpoints checkpoints(o, run);
  Progress progress(o.epochs, set.size(), recipe.unit);
  const auto steps = static_cast<double>(o.epochs * loader.size());
  while (static_cast<int64_t>(loader.state().epoch) < o.epochs) {
    const auto epoch = static_cast<int64_t>(loader.state().epoch);
    net.train();
    // What the run has seen of this epoch, if it was stopped in the middle.
    const bool begun = run.user.contains("total");
    Tensor total =
        begun ? run.user.at("total").tensor().to(device) : tenon::zeros({}, {.device = device});
    int64_t count = begun ? run.user.at("count").whole() : 0;
    progress.start_epoch(epoch, count);
    for (auto [x, y] : loader) {
      const auto step = static_cast<double>(run.step);
      const double share =
                       (recipe.by_step ? step : static_cast<double>(epoch * loader.size())) / steps,
                   rise = (step + 1) / static_cast<double>(recipe.warmup + 1);
      optimizer.set_lr(o.lr * std::min(rise, 1.0) * 0.5 * (1 + std::cos(std::numbers::pi * share)));
      optimizer.zero_grad();
      Tensor loss;
      {
        const tenon::Autocast guard(tenon::DType::bf16, {.enabled = recipe.bf16});
        loss = loss_of(x.to(device), y.to(device));
      }
      loss.backward();
      if (recipe.max_norm > 0) tenon::nn::utils::clip_grad_norm_(net.parameters(), recipe.max_norm);
      optimizer.step();
      // Only queued: the loss is read, and so waited for, when it is shown.
      total = total + loss.detach() * static_cast<double>(x.size(0));
      count += x.size(0);
      run.user = {{"total", total}, {"count", count}};
      checkpoints.step();
      if (progress.due()) progress.show(count, mean_loss(total, count, epoch));
    }
    progress.end_epoch(mean_loss(total, count, epoch));
    checkpoints.end_epoch();
  }
}

// Loads o.load into the model, where there is one, and says what was found.
template <class Net>
void load_into(Net& net, const Options& o) {
  if (!o.load.empty()) std::printf("%s\n", tenon::load(o.load, net).str().c_str());
}

struct DataSets {
  tenon::data::TensorDataset train, test;
};

// 28 x 28 pictures: those of o.data, or generated ones.
inline DataSets load_pictures(const Options& o) {
  if (!o.data.empty()) return {tenon::data::mnist(o.data, true), tenon::data::mnist(o.data, false)};
  return {tenon::data::synthetic(10000, {.seed = 2 * o.seed}),
          tenon::data::synthetic(2000, {.seed = 2 * o.seed + 1})};
}

// The share of right answers.
template <class Net>
double accuracy(Net& net, const tenon::data::TensorDataset& set) {
  tenon::metrics::Accuracy right;
  tenon::nn::evaluate(net, tenon::data::DataLoader(set, {.batch_size = 500, .shuffle = false}),
                      right);
  return right.compute().item();
}

template <class Net>
void train_and_evaluate(Net& net, const Options& o) {
  load_into(net, o);
  DataSets data = load_pictures(o);
  if (o.epochs > 0) {
    tenon::optim::SGD optimizer(net.parameters(),
                                {.lr = o.lr, .momentum = 0.9, .weight_decay = 5e-4});
    train(net, optimizer, data.train, o, {},
          [&](const Tensor& x, const Tensor& y) { return tenon::cross_entropy(net(x), y); });
  }
  if (!o.save.empty()) tenon::save(o.save, net);
  std::printf("test accuracy %.4f\n", accuracy(net, data.test));
}

// The main function of a classifier of 28 x 28 pictures. Net is made after the seed is set; on
// several devices it is wrapped as it is.
template <class Net>
int run_classifier(int argc, char** argv, const std::string& description, const Options& defaults) {
  return run(argc, argv, {.description = description}, defaults, [](const Options& o) {
    if (o.devices.size() > 1) {
      tenon::nn::DataParallel net(Net{}, o.devices);
      train_and_evaluate(net, o);
    } else {
      Net net;
      net.to(o.devices.front());
      train_and_evaluate(net, o);
    }
  });
}

}  // namespace example
