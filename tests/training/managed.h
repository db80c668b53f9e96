// A small training run, for tests of what saves it at intervals.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <tenon/tenon.h>

namespace tenon::test::managed {

struct Run {
  nn::Linear net{3, 2};
  optim::SGD optimizer{net.parameters(), {.lr = 0.1, .momentum = 0.9}};
  Checkpoint all{.model = net, .optimizer = optimizer};

  void train() {
    optimizer.zero_grad();
    net(randn({4, 3})).abs().sum().backward();
    optimizer.step();
  }
  std::vector<float> weights() const { return net.weight.to_vector<float>(); }
};

inline std::set<std::string> names_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.insert(entry.path().filename());
  return names;
}

inline int64_t step_in(const std::filesystem::path& path) {
  Checkpoint run{.random = false};
  load(path, run, {.strict = false});
  return run.step;
}

}  // namespace tenon::test::managed
