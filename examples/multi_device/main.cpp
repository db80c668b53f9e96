// Trains LeNet and ResNet-18 on 1, 2, 4 … of the devices, and shows what devices do at the same
// time.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "async/overlap.h"
#include "common/training.h"
#include "lenet/model.h"
#include "resnet18/model.h"

using namespace tenon;

namespace {

struct Learned {
  double seconds, accuracy;    // of the fastest epoch; after the last
  std::vector<double> shares;  // of a batch, at the end
};

// Each time with the same first weights and the same batches, which the devices share.
template <class Net>
Learned learn(const Net& fresh, const std::vector<Device>& devices, const example::DataSets& sets,
              const example::Options& o, bool balance) {
  nn::DataParallel net(nn::clone(fresh), devices, {.balance = balance});
  optim::SGD optimizer(net.parameters(), {.lr = o.lr, .momentum = 0.9, .weight_decay = 5e-4});
  data::DataLoader loader(
      sets.train, {.batch_size = o.batch_size, .shuffle = true, .seed = o.seed, .workers = 1});
  const auto epoch = [&] {
    for (auto [x, y] : loader) {
      optimizer.zero_grad();
      cross_entropy(net(x.to(devices[0])), y.to(devices[0])).backward();
      optimizer.step();
    }
    synchronize();
  };
  const double seconds = example::best_of(o.epochs, epoch);
  return {seconds, example::accuracy(net, sets.test), net.shares()};
}

template <class Net>
void compare(const char* name, const Net& fresh, const example::DataSets& sets,
             const example::Options& o, bool balance) {
  double alone = 0;
  for (size_t n = 1; n <= o.devices.size(); n *= 2) {
    const std::vector<Device> used(o.devices.begin(), o.devices.begin() + static_cast<long>(n));
    const Learned found = learn(fresh, used, sets, o, balance);
    if (n == 1) alone = found.seconds;
    std::printf("%-10s %7zu %11.2f %9.4f %9.2f ", name, n, found.seconds, found.accuracy,
                alone / found.seconds);
    for (double share : found.shares) std::printf(" %.3f", share);
    std::printf("\n");
  }
}

void show(const example::Options& o, int64_t images, int64_t width, bool balance,
          const example::OverlapOptions& overlap) {
  if (o.epochs > 0) {
    const auto pictures = [&](int64_t count, uint64_t seed) {
      return data::synthetic(count, {.seed = seed});
    };
    const example::DataSets sets = o.data.empty()
                                       ? example::DataSets{pictures(images, 2 * o.seed),
                                                           pictures(images / 5 + 1, 2 * o.seed + 1)}
                                       : example::load_pictures(o);
    std::printf("%-10s %7s %11s %9s %9s  %s\n", "model", "devices", "s an epoch", "accuracy",
                "speed-up", "shares");
    compare("LeNet", LeNet(), sets, o, balance);
    compare("ResNet-18", ResNet18(sets.train.data().size(1), width), sets, o, balance);
  }
  // Chains on two devices; more would share the processors of most machines.
  const auto two = std::min<long>(2, static_cast<long>(o.devices.size()));
  example::show_overlap({o.devices.begin(), o.devices.begin() + two}, overlap);
}

}  // namespace

int main(int argc, char** argv) {
  example::Options o = {.epochs = 3, .lr = 0.05};
  example::OverlapOptions overlap;
  std::string devices = "cpu:0,cpu:1,cpu:2,cpu:3";
  int64_t images = 10000, width = 8;
  bool balance = false;
  CLI::App app("Trains LeNet and ResNet-18 on 1, 2, 4 ... of the devices, and shows what overlaps");
  app.option_defaults()->always_capture_default();
  app.add_option("--device", devices, "The devices");
  app.add_option("--data", o.data, "Folder of IDX files; without it pictures are generated");
  const CLI::Range number(1, 1 << 20);
  app.add_option("--images", images, "How many are generated")->check(number);
  app.add_option("--epochs", o.epochs, "Passes over them, the fastest of which counts; 0: none")
      ->check(CLI::Range(0, 1000));
  app.add_option("--batch-size", o.batch_size, "Examples in a step")->check(number);
  app.add_option("--lr", o.lr, "Learning rate");
  app.add_option("--seed", o.seed, "Of the weights, the pictures and their order");
  app.add_option("--width", width, "Channels of the first layer of ResNet-18")->check(number);
  app.add_flag("--balance", balance, "Shares a batch out by how fast each device is");
  app.add_option("--size", overlap.size, "Rows and columns of the matrices in the measurements")
      ->check(CLI::Range(1, 1 << 14));
  app.add_option("--times", overlap.times, "How many products of them a chain has")->check(number);
  app.add_option("--trace", overlap.trace, "Write a trace for https://ui.perfetto.dev");
  CLI11_PARSE(app, argc, argv);
  try {
    o.devices = parse_devices(devices);
    manual_seed(o.seed);
    show(o, images, width, balance, overlap);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "multi_device: %s\n", e.what());
    return 1;
  }
}
