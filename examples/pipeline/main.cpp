// A model in two stages, each on a device of its own. A batch goes through them in parts: while the
// second stage works on one part, the first works on the next ("GPipe", Huang et al.,
// arXiv:1811.06965). Nothing here says so: work is queued, and each device does its own.
#include "common/training.h"

using namespace tenon;

struct Stages : nn::Module<Stages> {
  static constexpr int num_fields = 3;
  nn::Sequential first{nn::Flatten(), nn::Linear(784, 1024), nn::ReLU(), nn::Linear(1024, 1024),
                       nn::ReLU()};
  nn::Sequential second{nn::Linear(1024, 1024), nn::ReLU(), nn::Linear(1024, 1024), nn::ReLU(),
                        nn::Linear(1024, 10)};
  std::vector<Device> devices;

  // The stages on these devices; on one if there is but one.
  explicit Stages(std::vector<Device> places) : devices(std::move(places)) {
    first.to(devices.front());
    second.to(devices.back());
  }

  // Results stay on the last device: the first one would wait for them before its next part. The
  // copy between the devices is recorded, and gradients come back the same way.
  Tensor forward(const Tensor& x) {
    return second(first(x.to(devices.front())).to(devices.back()));
  }
};

// The mean loss of a batch. All parts are queued before the first one is done.
Tensor loss_in_parts(Stages& net, const Tensor& x, const Tensor& y, int64_t parts) {
  const std::vector<Device> here(static_cast<size_t>(std::min(parts, x.size(0))), x.device());
  Tensor total;
  for (auto& [px, py] : nn::parallel::split_and_load(x, y, here)) {
    const Tensor scores = net(px);
    const Tensor loss =
        cross_entropy(scores, py.to(scores.device()), {.reduction = Reduction::sum});
    total = total.defined() ? total + loss : loss;
  }
  return (total / static_cast<double>(x.size(0))).to(x.device());
}

int main(int argc, char** argv) {
  int64_t parts = 4;
  const example::Program program = {
      .description = "Trains a model whose two halves are on different devices",
      .extras = {{"--parts", &parts, "Into how many parts a batch is split"}}};
  const example::Options defaults = {.epochs = 3, .batch_size = 256, .lr = 1e-3};
  return example::run(argc, argv, program, defaults, [&](const example::Options& o) {
    const auto sets = example::load_pictures(o);
    Stages net(o.devices);
    example::load_into(net, o);
    if (o.epochs > 0) {
      optim::Adam optimizer(net.parameters(), {.lr = o.lr});
      example::train(net, optimizer, sets.train, o, {}, [&](const Tensor& x, const Tensor& y) {
        return loss_in_parts(net, x, y, parts);
      });
    }
    if (!o.save.empty()) save(o.save, net);
    std::printf("test accuracy %.4f\n", example::accuracy(net, sets.test));
  });
}
