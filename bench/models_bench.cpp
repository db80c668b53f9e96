// Training steps of the models of examples/, as they are, on batches like the examples' own.
#include <memory>
#include <optional>

#include <chargpt/model.h>
#include <lenet/model.h>
#include <lstm/model.h>
#include <resnet18/model.h>

#include "subject.h"

using namespace tenon;

namespace {

template <class Optimizer, class Net, class Options, class Loss>
auto step(std::shared_ptr<Net> net, const Options& options, Loss loss) {
  auto optimizer = std::make_shared<Optimizer>(net->parameters(), options);
  return [=] {
    optimizer->zero_grad();
    loss(*net).backward();
    optimizer->step();
    synchronize();
  };
}

template <class Net>
auto pictures(std::shared_ptr<Net> net, const Shape& shape) {
  const Tensor x = rand(shape), y = randint(0, 10, {shape[0]});
  return step<optim::SGD>(net, optim::SGDOptions{.lr = 0.01, .momentum = 0.9},
                          [=](Net& f) { return cross_entropy(f(x), y); });
}

template <class Net>
auto text(bool half = false) {
  constexpr int64_t kCharacters = 65, kBatch = 32;
  auto net = std::make_shared<Net>(Net{{}, kCharacters});
  const Tensor x = randint(0, kCharacters, {kBatch, Net::kBlock}),
               y = randint(0, kCharacters, {kBatch, Net::kBlock});
  return step<optim::AdamW>(net, optim::AdamWOptions{.lr = 1e-3}, [=](Net& f) {
    std::optional<Autocast> cast;
    if (half) cast.emplace(bf16);
    return cross_entropy(f(x).flatten(0, 1), y.flatten());
  });
}

}  // namespace

int main(int argc, char** argv) {
  for (int64_t batch : {16, 64, 256})
    bench::subject("models/lenet_" + std::to_string(batch), [=] {
      return pictures(std::make_shared<LeNet>(), {batch, 1, 28, 28});
    });
  bench::subject("models/resnet18_32", [] {
    return pictures(std::make_shared<ResNet18>(3, 64), {32, 3, 32, 32});
  });
  bench::subject("models/chargpt_32", [] { return text<CharGpt>(); });
  bench::subject("models/chargpt_32_bf16", [] { return text<CharGpt>(true); });
  bench::subject("models/lstm_32", [] { return text<CharLstm>(); });
  return bench::run(argc, argv);
}
