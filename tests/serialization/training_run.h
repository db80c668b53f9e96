// A small model that is trained for some steps, for tests of what a checkpoint of it holds.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <tenon/tenon.h>

#include "serialization/sealed.h"

namespace tenon::test::training_run {

struct Net : nn::Module<Net> {
  nn::Linear fc1{3, 4}, fc2{4, 2};
  Tensor forward(const Tensor& x) { return fc2(fc1(x)); }
};

// Parts of a training, and a checkpoint with all of them.
struct Run {
  Net net;
  optim::Adam adam{net.parameters(), {.lr = 0.1}};
  optim::StepLR rate{adam, 2, 0.5};
  amp::GradScaler scaler;
  data::DataLoader loader{data::TensorDataset(ones({10, 3}), zeros({10})), {.batch_size = 2}};
  Checkpoint all{.model = net,
                 .optimizer = adam,
                 .scheduler = rate,
                 .scaler = scaler,
                 .loader = loader,
                 .epoch = 7,
                 .user = {{"note", "here"}}};
};

// One step whose gradients are those of fixed random inputs.
inline void step(optim::Optimizer& optimizer, const std::vector<Tensor>& params, int number) {
  auto closure = [&] {
    optimizer.zero_grad();
    Tensor loss = zeros({});
    for (size_t i = 0; i < params.size(); ++i) {
      const Tensor shift =
          full(params[i].shape(), std::sin(static_cast<double>(3 * number) + double(i)));
      loss = loss + ((params[i].to(f32) - shift) * (params[i].to(f32) - shift)).sum();
    }
    loss.backward();
    return loss;
  };
  optimizer.step(closure);
}
inline void step(optim::Optimizer& optimizer, const Net& net, int number) {
  step(optimizer, net.parameters(), number);
}

inline std::vector<double> values_of(const std::vector<Tensor>& tensors) {
  std::vector<double> all;
  for (const Tensor& tensor : tensors)
    for (double value : tensor.to_vector<double>()) all.push_back(value);
  return all;
}

inline std::string all_bits(const std::filesystem::path& path, const Checkpoint& run) {
  save(path, run);
  return read_bytes(path);
}

}  // namespace tenon::test::training_run
