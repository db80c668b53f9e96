// Trains the ResNet-18 of model.h on small pictures: CIFAR-10's or Fashion-MNIST's.
#include <filesystem>

#include "common/training.h"
#include "resnet18/model.h"

namespace data = tenon::data;

// CIFAR-10 where the folder has its files, otherwise pictures of 28 x 28. Those to learn from are
// moved by some pixels and mirrored, differently in each epoch.
example::DataSets load_data(const example::Options& o) {
  const bool cifar = std::filesystem::exists(o.data + "/data_batch_1.bin") ||
                     std::filesystem::exists(o.data + "/data_batch_1.bin.gz");
  const data::Cifar10Options colours = {
      .pixels = {.mean = {0.4914, 0.4822, 0.4465}, .std = {0.247, 0.2435, 0.2616}}};
  example::DataSets sets = cifar ? example::DataSets{data::cifar10(o.data, true, colours),
                                                     data::cifar10(o.data, false, colours)}
                                 : example::load_pictures(o);
  sets.train.transform(
      {data::RandomCrop(sets.train.data().size(2), {.padding = 4}), data::RandomHorizontalFlip()});
  return sets;
}

int main(int argc, char** argv) {
  int64_t width = 64;
  bool half = false;
  const example::Program program = {
      .description = "Trains ResNet-18 on small pictures of ten classes",
      .data =
          "Folder of CIFAR-10 (data_batch_1.bin and so on) or of IDX files (Fashion-MNIST), "
          "packed or not; without it pictures are generated",
      .extras = {{"--width", &width, "Channels of the first layer; fewer are faster"},
                 {"--bf16", &half, "Train in mixed precision"}}};
  const example::Options defaults = {.epochs = 30, .batch_size = 64, .lr = 0.05};
  return example::run(argc, argv, program, defaults, [&](const example::Options& o) {
    const auto sets = load_data(o);
    ResNet18 net(sets.train.data().size(1), width);
    net.to(o.devices.front());
    example::load_into(net, o);
    nn::SyncBatchNorm::convert_sync_batchnorm(net);  // statistics of whole batches on any devices
    nn::DataParallel shared(net, o.devices);         // the same parameters
    if (o.epochs > 0) {
      tenon::optim::SGD optimizer(
          net.parameters(), {.lr = o.lr, .momentum = 0.9, .weight_decay = 5e-4, .nesterov = true});
      example::train(
          shared, optimizer, sets.train, o, {.by_step = true, .warmup = 100, .bf16 = half},
          [&](const Tensor& x, const Tensor& y) { return tenon::cross_entropy(shared(x), y); });
    }
    if (!o.save.empty()) tenon::save(o.save, net);
    std::printf("test accuracy %.4f\n", example::accuracy(shared, sets.test));
  });
}
