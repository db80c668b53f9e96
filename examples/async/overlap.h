// The measurements of "Computational Performance" in Dive into Deep Learning (sections 13.2 and
// 13.3), by one clock, and as a trace in which the overlap is seen: how far the program is ahead of
// its devices, devices apart and together, copies and computing apart and together.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <tenon/tenon.h>

namespace example {

using namespace tenon;

inline double seconds_of(const std::function<void()>& body) {
  const auto began = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

// The best of some turns: other programs may disturb one.
inline double best_of(int64_t turns, const std::function<void()>& body) {
  double best = seconds_of(body);
  for (int64_t turn = 1; turn < turns; ++turn) best = std::min(best, seconds_of(body));
  return best;
}

// A chain: each product needs the one before it.
inline Tensor multiply(Tensor x, int64_t times) {
  const double scale = 1.0 / static_cast<double>(x.size(0));
  for (int64_t i = 0; i < times; ++i) x = matmul(x, x) * scale;
  return x;
}

inline void print(const char* what, double seconds) {
  std::printf("%-44s %9.2f ms\n", what, seconds * 1e3);
}

// How long it takes to queue work, and until it is done.
inline void queue_and_finish(const Tensor& x, int64_t times) {
  double queued = 0;
  const double done = seconds_of([&] {
    profiler::Range range("queue and finish");
    queued = seconds_of([&] { multiply(x, times); });
    synchronize();
  });
  print("queued", queued);
  print("done", done);
}

inline void devices_together(const std::vector<Tensor>& inputs, int64_t times, int64_t turns) {
  double sum = 0, slowest = 0;
  for (auto& x : inputs) {
    const double alone = best_of(turns, [&] {
      profiler::Range range("one device");
      multiply(x, times);
      synchronize();
    });
    print((x.device().str() + " alone").c_str(), alone);
    sum += alone;
    slowest = std::max(slowest, alone);
  }
  const double together = best_of(turns, [&] {
    profiler::Range range("devices together");
    for (auto& x : inputs) multiply(x, times);
    synchronize();
  });
  print("together", together);
  std::printf("together / sum %.2f, together / slowest %.2f\n", together / sum, together / slowest);
}

// Copies between the first device and the last while the first computes: its results go out, or
// what it needs next comes in.
inline void compute_and_copy(const Tensor& x, Device other, bool out, int64_t times,
                             int64_t turns) {
  std::vector<Tensor> values(static_cast<size_t>(times)), results = values;
  const Device target = out ? other : x.device();
  for (auto& v : values) v = rand(x.shape(), {.device = out ? x.device() : other});
  const auto compute = [&](size_t i) { results[i] = multiply(x, 1); };
  const auto copy = [&](size_t i) {
    (out && results[i].defined() ? results : values)[i].to(target);
  };
  const auto time_of = [&](bool computes, bool copies, const char* what) {
    return best_of(turns, [&] {
      profiler::Range range(what);
      for (size_t i = 0; i < values.size(); ++i) {
        if (computes) compute(i);
        if (copies) copy(i);
      }
      synchronize();
    });
  };
  const double computing = time_of(true, false, "compute"), copying = time_of(false, true, "copy"),
               overlapped = time_of(true, true, "compute and copy");
  print("computing", computing);
  print(("copying to " + target.str()).c_str(), copying);
  print("both, overlapped", overlapped);
  std::printf("overlapped / sum %.2f, overlapped / larger %.2f\n",
              overlapped / (computing + copying), overlapped / std::max(computing, copying));
}

struct OverlapOptions {
  int64_t size = 500, times = 20, turns = 5;  // of the matrices; of the products; of each time
  std::string trace = {};                     // a file; empty: none is written
};

inline void show_overlap(const std::vector<Device>& devices, const OverlapOptions& o) {
  std::vector<Tensor> inputs;
  for (auto& device : devices) {
    inputs.push_back(rand({o.size, o.size}, {.device = device}));
    multiply(inputs.back(), 2);  // loads the plugin and makes the plans
  }
  synchronize();
  std::optional<profiler::Profiler> profiler;
  if (!o.trace.empty()) profiler.emplace();
  std::printf("chains of %lld products of %lld x %lld\n", static_cast<long long>(o.times),
              static_cast<long long>(o.size), static_cast<long long>(o.size));
  queue_and_finish(inputs.front(), o.times);
  if (inputs.size() > 1) devices_together(inputs, o.times, o.turns);
  compute_and_copy(inputs.front(), devices.back(), true, o.times, o.turns);
  if (inputs.size() > 1) compute_and_copy(inputs.front(), devices.back(), false, o.times, o.turns);
  if (!profiler) return;
  profiler->stop();
  profiler->export_chrome_trace(o.trace);
  std::printf("%s: %zu events\n", o.trace.c_str(), profiler->events().size());
}

}  // namespace example
