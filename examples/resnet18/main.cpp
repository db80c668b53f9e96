// ResNet-18 (He et al., arXiv:1512.03385) with torchvision's names, and with a first convolution of
// 3 x 3 in place of 7 x 7 and pooling, for small pictures: CIFAR-10's and Fashion-MNIST's.
#include <filesystem>

#include "common/training.h"

namespace nn = tenon::nn;
namespace data = tenon::data;
using tenon::Tensor;

struct BasicBlock : nn::Module<BasicBlock> {
  static constexpr int num_fields = 5;
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  std::optional<nn::Sequential> downsample;  // where the shape changes

  BasicBlock(int64_t in, int64_t out, int64_t stride)
      : conv1(in, out, 3, {.stride = stride, .padding = 1}, {.bias = false}),
        bn1(out),
        conv2(out, out, 3, {.padding = 1}, {.bias = false}),
        bn2(out) {
    if (stride != 1 || in != out)
      downsample.emplace(nn::Conv2d(in, out, 1, {.stride = stride}, {.bias = false}),
                         nn::BatchNorm2d(out));
  }

  Tensor forward(const Tensor& x) {
    const Tensor h = bn2(conv2(relu(bn1(conv1(x)))));
    return relu(h + (downsample ? (*downsample)(x) : x));
  }
};

struct ResNet18 : nn::Module<ResNet18> {
  static constexpr int num_fields = 7;
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  std::vector<BasicBlock> layer1, layer2, layer3, layer4;
  nn::Linear fc;

  ResNet18(int64_t channels, int64_t width)
      : conv1(channels, width, 3, {.padding = 1}, {.bias = false}),
        bn1(width),
        layer1{{width, width, 1}, {width, width, 1}},
        layer2{{width, 2 * width, 2}, {2 * width, 2 * width, 1}},
        layer3{{2 * width, 4 * width, 2}, {4 * width, 4 * width, 1}},
        layer4{{4 * width, 8 * width, 2}, {8 * width, 8 * width, 1}},
        fc(8 * width, 10) {
    for (auto& [name, p] : named_parameters())
      if (p.dim() == 4) nn::init::kaiming_normal_(p, {.mode = nn::init::Fan::out});
  }

  Tensor forward(const Tensor& x) {
    Tensor h = relu(bn1(conv1(x)));
    for (auto* layer : {&layer1, &layer2, &layer3, &layer4})
      for (auto& block : *layer) h = block(h);
    return fc(h.mean({2, 3}));
  }
};

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
  const example::Program program = {
      .description = "Trains ResNet-18 on small pictures of ten classes",
      .data =
          "Folder of CIFAR-10 (data_batch_1.bin and so on) or of IDX files (Fashion-MNIST), "
          "packed or not; without it pictures are generated",
      .extras = {{"--width", &width, "Channels of the first layer; fewer are faster"}}};
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
          shared, optimizer, sets.train, o, {.by_step = true, .warmup = 100},
          [&](const Tensor& x, const Tensor& y) { return tenon::cross_entropy(shared(x), y); });
    }
    if (!o.save.empty()) tenon::save(o.save, net);
    std::printf("test accuracy %.4f\n", example::accuracy(shared, sets.test, o.devices.front()));
  });
}
