// Trains small models, so that tests can say whether two ways of doing it come to the same; and the
// devices to do it on.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <tenon/tenon.h>

namespace tenon::test {

// Devices to share work among: those of the kind that is tested (cpu where there is no other), and
// cpus where these are too few.
inline std::vector<Device> places(uint32_t n) {
  std::vector<Device> devices;
  const auto kind = default_device().type();
  const uint32_t there = kind == "cpu" ? n : std::min(n, device_count(kind));
  for (uint32_t i = 0; i < there; ++i) devices.emplace_back(kind, i);
  for (uint32_t i = 0; devices.size() < n; ++i) devices.emplace_back("cpu", i);
  return devices;
}

inline nn::Sequential mlp(uint64_t seed) {
  manual_seed(seed);
  return nn::Sequential(nn::Linear(8, 16), nn::ReLU(), nn::BatchNorm1d(16), nn::Linear(16, 3));
}

// Parameters after some steps, and their gradients.
template <class Model>
std::vector<std::vector<float>> trained(Model model, Device device, int steps) {
  model.to(device);
  optim::SGD optimizer(model.parameters(), {.lr = 0.1, .momentum = 0.9});
  manual_seed(5);
  for (int i = 0; i < steps; ++i) {
    Tensor x = randn({12, 8}).to(device), y = randint(0, 3, {12}).to(device);
    optimizer.zero_grad();
    cross_entropy(model(x), y).backward();
    optimizer.step();
  }
  std::vector<std::vector<float>> all;
  for (Tensor& p : model.parameters()) {
    all.push_back(p.template to_vector<float>());
    all.push_back(p.grad().template to_vector<float>());
  }
  return all;
}

// Infinite where there is a NaN or where sizes differ.
template <class T>
double largest_difference(const std::vector<std::vector<T>>& a,
                          const std::vector<std::vector<T>>& b) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  double largest = a.size() == b.size() ? 0 : infinity;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i].size() != b[i].size()) return infinity;
    for (size_t j = 0; j < a[i].size(); ++j) {
      const double difference =
          std::abs(static_cast<double>(a[i][j]) - static_cast<double>(b[i][j]));
      largest = difference <= largest ? largest : std::isnan(difference) ? infinity : difference;
    }
  }
  return largest;
}

}  // namespace tenon::test
