// A variational autoencoder (Kingma and Welling, arXiv:1312.6114) of 28 x 28 pictures: it learns to
// code a picture as 20 numbers, and to draw new ones from numbers at random.
#include <fstream>

#include "common/training.h"

using namespace tenon;

struct Vae : nn::Module<Vae> {
  nn::Linear hidden{784, 400}, mean{400, 20}, log_variance{400, 20};
  nn::Linear widen{20, 400}, pixels{400, 784};

  Tensor decode(const Tensor& z) { return pixels(relu(widen(z))); }  // logits

  // Returns minus the lower bound of the likelihood, a number for each picture: what the code of a
  // picture does not say of it, and what it says at all.
  Tensor forward(const Tensor& x) {
    const Tensor picture = x.flatten(1), h = relu(hidden(picture));
    const Tensor m = mean(h), v = log_variance(h);
    const Tensor z = m + exp(v * 0.5) * randn(m.shape(), {.device = m.device()});
    const Tensor unsaid =
        binary_cross_entropy_with_logits(decode(z), picture, {.reduction = Reduction::none});
    const Tensor said = (square(m) + exp(v) - v - 1) * 0.5;
    return unsaid.sum({1}) + said.sum({1});
  }
};

// The mean loss of the pictures.
template <class Net>
double evaluate(Net& net, const data::TensorDataset& set, Device device) {
  NoGrad guard;
  net.eval();
  Tensor total = zeros({}, {.device = device});
  for (auto [x, y] : data::DataLoader(set, {.batch_size = 500, .shuffle = false}))
    total = total + net(x.to(device)).sum();
  return total.item() / static_cast<double>(set.size());
}

// Eight rows of eight pictures that the model makes up, as a file of grey values (PGM).
void draw(Vae& net, const std::string& path, Device device) {
  NoGrad guard;
  const Tensor grey = sigmoid(net.decode(randn({64, 20}, {.device = device}))) * 255;
  const Tensor sheet = grey.reshape({8, 8, 28, 28}).permute({0, 2, 1, 3}).reshape({224, 224});
  const auto bytes = sheet.to(u8).to_vector<uint8_t>();
  std::ofstream file(path, std::ios::binary);
  file << "P5 224 224 255\n";
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) throw std::runtime_error("cannot write pictures to \"" + path + "\"");
}

int main(int argc, char** argv) {
  std::string pictures;
  const example::Program program = {
      .description = "Trains a variational autoencoder on 28 x 28 pictures",
      .extras = {{"--pictures", &pictures, "Draw 64 new pictures into this file (PGM)"}}};
  const example::Options defaults = {.epochs = 10, .batch_size = 128, .lr = 1e-3};
  return example::run(argc, argv, program, defaults, [&](const example::Options& o) {
    Vae net;
    example::load_into(net, o);
    nn::DataParallel shared(net, o.devices);  // the same parameters
    const auto data = example::load_pictures(o);
    optim::Adam optimizer(net.parameters(), {.lr = o.lr});
    if (o.epochs > 0)
      example::train(shared, optimizer, data.train, o, {.by_step = true},
                     [&](const Tensor& x, const Tensor&) { return shared(x).mean(); });
    if (!o.save.empty()) save(o.save, net);
    std::printf("test loss %.2f\n", evaluate(shared, data.test, o.devices.front()));
    if (!pictures.empty()) draw(net, pictures, o.devices.front());
  });
}
