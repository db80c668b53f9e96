// A whole training step of a small LeNet, over tensors that stay where they are: what the tests of
// stream graphs capture.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tenon/tenon.h>

#include "support/expect.h"

namespace tenon::test {

// For square images of `side` pixels, at least 12.
struct LeNet : nn::Module<LeNet> {
  static constexpr int num_fields = 6;
  nn::Conv2d conv1{1, 6, 5, {.padding = 2}}, conv2{6, 16, 5};
  nn::MaxPool2d pool{2};
  nn::Linear fc1, fc2{120, 84}, fc3{84, 10};
  explicit LeNet(int64_t side = 28) : fc1(16 * ((side / 2 - 4) / 2) * ((side / 2 - 4) / 2), 120) {}
  Tensor forward(const Tensor& x) {
    Tensor h = pool(relu(conv1(x)));
    h = pool(relu(conv2(h))).flatten(1);
    return fc3(relu(fc2(relu(fc1(h)))));
  }
};

// A model, its optimizer and the tensors that its steps read and write. Two of them begin alike.
class Training {
 public:
  explicit Training(Device device, bool adam = false, int64_t side = 28) : side_(side) {
    manual_seed(3);
    model = LeNet(side);
    model.to(device);
    if (adam)
      optimizer =
          std::make_unique<optim::Adam>(model.parameters(), optim::AdamOptions{.lr = 0.002});
    else
      optimizer = std::make_unique<optim::SGD>(model.parameters(),
                                               optim::SGDOptions{.lr = 0.02, .momentum = 0.9});
    x = zeros({4, 1, side, side}, {.device = device});
    y = zeros({4}, {.dtype = i64, .device = device});
  }

  void next_batch(int64_t i) {
    manual_seed(100 + static_cast<uint64_t>(i));
    x.copy_(randn({4, 1, side_, side_}));
    y.copy_(randint(0, 10, {4}));
  }
  void step() {
    optimizer->zero_grad();
    loss = cross_entropy(model(x), y);
    loss.backward();
    optimizer->step();
  }

  // All parameters, then their gradients.
  std::vector<std::vector<float>> values() {
    std::vector<std::vector<float>> all;
    for (auto& p : model.parameters()) all.push_back(p.to_vector<float>());
    for (auto& p : model.parameters()) all.push_back(p.grad().to_vector<float>());
    return all;
  }

  LeNet model;
  std::unique_ptr<optim::Optimizer> optimizer;
  Tensor x, y, loss;

 private:
  int64_t side_;
};

// What is asked of a device that captures is an Error with `part` in its text, and the capture goes
// on.
template <class F>
void check_refused(F&& call, const std::string& part) {
  const std::string text = error_of(call);
  BOOST_TEST(has(text, part), "\"" << text << "\" does not say \"" << part << "\"");
}

}  // namespace tenon::test
