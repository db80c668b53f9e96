// The gradients that a pass leaves, and how often devices had to sum.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include <tenon/tenon.h>

namespace tenon::test {

// Values of bucket_cap_mb: a bucket for each gradient, and one that is not full.
inline constexpr double kEach = 1e-6, kNone = 1e9;

inline const std::vector<Device> three = {"cpu:0", "cpu:1", "cpu:2"};

using Values = std::vector<std::vector<double>>;

inline Values values_of(const std::vector<Tensor>& tensors) {
  Values all;
  for (auto& t : tensors)
    all.push_back(t.defined() ? t.to_vector<double>() : std::vector<double>());
  return all;
}

inline Values grads_of(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> all;
  for (auto& p : parameters) all.push_back(p.grad());
  return values_of(all);
}

// How many sums over devices were made while `work` ran.
inline size_t sums_of(const std::function<void()>& work) {
  profiler::Profiler profiler;
  work();
  profiler.stop();
  const auto events = profiler.events();
  return static_cast<size_t>(
      std::count_if(events.begin(), events.end(), [](auto& e) { return e.lane == "cpu:0 sums"; }));
}

}  // namespace tenon::test
