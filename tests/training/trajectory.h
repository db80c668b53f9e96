// Follows a recorded training run step by step: tests/reference/trajectories, from PyTorch.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <hdf5.h>

#include <tenon/tenon.h>

#include "places.h"

namespace tenon::test {

// One file of FORMAT.md.
class Trajectory {
 public:
  explicit Trajectory(const std::string& name)
      : file_(H5Fopen((reference_dir() + "/trajectories/" + name + ".h5").c_str(), H5F_ACC_RDONLY,
                      H5P_DEFAULT)) {
    BOOST_REQUIRE(file_ >= 0);
  }
  ~Trajectory() { H5Fclose(file_); }

  Tensor read(const std::string& dataset, hid_t memory_type, DType dtype) const {
    const hid_t d = H5Dopen2(file_, dataset.c_str(), H5P_DEFAULT), space = H5Dget_space(d);
    BOOST_REQUIRE(d >= 0);
    std::vector<hsize_t> dims(static_cast<size_t>(H5Sget_simple_extent_ndims(space)));
    H5Sget_simple_extent_dims(space, dims.data(), nullptr);
    Shape shape;
    for (auto n : dims) shape.push_back(static_cast<int64_t>(n));
    std::vector<char> bytes(static_cast<size_t>(shape.numel()) * size_of(dtype));
    BOOST_REQUIRE(H5Dread(d, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) >= 0);
    H5Sclose(space);
    H5Dclose(d);
    return from_host(bytes.data(), dtype, shape, {.dtype = dtype});
  }
  Tensor floats(const std::string& dataset) const { return read(dataset, H5T_NATIVE_FLOAT, f32); }
  std::vector<double> losses() const {
    return read("losses", H5T_NATIVE_DOUBLE, f64).to_vector<double>();
  }
  Tensor x() const { return read("x", H5T_NATIVE_UINT8, u8); }
  Tensor y() const { return read("y", H5T_NATIVE_INT64, i64); }

 private:
  hid_t file_;
};

inline nn::Sequential lenet() {
  return nn::Sequential(nn::Conv2d(1, 6, 5, {.padding = 2}), nn::Sigmoid(), nn::AvgPool2d(2),
                        nn::Conv2d(6, 16, 5), nn::Sigmoid(), nn::AvgPool2d(2), nn::Flatten(),
                        nn::Linear(400, 120), nn::Sigmoid(), nn::Linear(120, 84), nn::Sigmoid(),
                        nn::Linear(84, 10));
}

inline nn::Sequential mlp() {
  return nn::Sequential(nn::Flatten(), nn::Linear(784, 32), nn::ReLU(), nn::Linear(32, 10));
}

// Runs `model` along the file. `key_prefix` is what a wrapper puts before its keys. Of more than
// `most` steps only the first are taken.
template <class M>
void follow(const std::string& name, M& model, optim::Optimizer& optimizer, Device device,
            const std::string& key_prefix = "",
            int64_t most = std::numeric_limits<int64_t>::max()) {
  Trajectory t(name);
  for (auto& [key, p] : model.named_parameters())
    no_grad([&] { Tensor(p).copy_(t.floats("init/" + key.substr(key_prefix.size()))); });

  const auto losses = t.losses();
  const auto xs = t.x().to(f32) / 255.0, ys = t.y();
  const int64_t steps = std::min(most, static_cast<int64_t>(losses.size()));
  for (int64_t step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    Tensor loss = cross_entropy(model(xs[step].to(device)), ys[step].to(device));
    loss.backward();
    optimizer.step();
    const double value = loss.item();
    BOOST_TEST(std::fabs(value - losses[static_cast<size_t>(step)]) <=
                   2e-4 * std::fabs(losses[static_cast<size_t>(step)]),
               "step " << step << ": loss " << value << ", expected "
                       << losses[static_cast<size_t>(step)]);
  }
  if (steps < static_cast<int64_t>(losses.size())) return;
  for (auto& [key, p] : model.named_parameters()) {
    const auto expected =
                   t.floats("final/" + key.substr(key_prefix.size())).template to_vector<float>(),
               got = p.template to_vector<float>();
    float largest = 0, worst = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      largest = std::max(largest, std::fabs(expected[i]));
      worst = std::max(worst, std::fabs(expected[i] - got[i]));
    }
    BOOST_TEST(worst <= 2e-3 * largest, key << ": " << worst << " off, largest weight " << largest);
  }
}

}  // namespace tenon::test
