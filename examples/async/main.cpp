// Work is queued, so a program is ahead of its devices; devices work at the same time, and copies
// while others compute. The measurements of "Computational Performance" in Dive into Deep Learning
// (sections 13.2 and 13.3), by one clock, and as a trace in which the overlap is seen.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <tenon/tenon.h>

using namespace tenon;

namespace {

double seconds_of(const std::function<void()>& body) {
  const auto began = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

// The best of some turns: other programs may disturb one.
double best_of(int64_t turns, const std::function<void()>& body) {
  double best = seconds_of(body);
  for (int64_t turn = 1; turn < turns; ++turn) best = std::min(best, seconds_of(body));
  return best;
}

// A chain: each product needs the one before it.
Tensor multiply(Tensor x, int64_t times) {
  const double scale = 1.0 / static_cast<double>(x.size(0));
  for (int64_t i = 0; i < times; ++i) x = matmul(x, x) * scale;
  return x;
}

void print(const char* what, double seconds) {
  std::printf("%-44s %9.2f ms\n", what, seconds * 1e3);
}

// How long it takes to queue work, and until it is done.
void queue_and_finish(const Tensor& x, int64_t times) {
  double queued = 0;
  const double done = seconds_of([&] {
    profiler::Range range("queue and finish");
    queued = seconds_of([&] { multiply(x, times); });
    synchronize();
  });
  print("queued", queued);
  print("done", done);
}

void devices_together(const std::vector<Tensor>& inputs, int64_t times, int64_t turns) {
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

// The results of one device go to another one while the next are computed.
void compute_and_copy(const Tensor& x, Device target, int64_t times, int64_t turns) {
  std::vector<Tensor> results(static_cast<size_t>(times));
  const auto compute = [&] {
    for (auto& y : results) y = multiply(x, 1);
  };
  const auto copy = [&] {
    for (auto& y : results) y.to(target);
  };
  compute();
  synchronize();
  const double computing = best_of(turns, [&] { compute(), synchronize(); });
  const double copying = best_of(turns, [&] { copy(), synchronize(); });
  const double overlapped = best_of(turns, [&] {
    profiler::Range range("compute and copy");
    for (auto& y : results) (y = multiply(x, 1)).to(target);
    synchronize();
  });
  print("computing", computing);
  print(("copying to " + target.str()).c_str(), copying);
  print("both, overlapped", overlapped);
  std::printf("overlapped / sum %.2f, overlapped / larger %.2f\n",
              overlapped / (computing + copying), overlapped / std::max(computing, copying));
}

void show(const std::vector<Device>& devices, int64_t size, int64_t times, int64_t turns,
          const std::string& trace) {
  std::vector<Tensor> inputs;
  for (auto& device : devices) {
    inputs.push_back(rand({size, size}, {.device = device}));
    multiply(inputs.back(), 2);  // loads the plugin and makes the plans
  }
  synchronize();
  std::optional<profiler::Profiler> profiler;
  if (!trace.empty()) profiler.emplace();
  std::printf("chains of %lld products of %lld x %lld\n", static_cast<long long>(times),
              static_cast<long long>(size), static_cast<long long>(size));
  queue_and_finish(inputs.front(), times);
  if (inputs.size() > 1) devices_together(inputs, times, turns);
  compute_and_copy(inputs.front(), devices.back(), times, turns);
  if (!profiler) return;
  profiler->stop();
  profiler->export_chrome_trace(trace);
  std::printf("%s: %zu events\n", trace.c_str(), profiler->events().size());
}

}  // namespace

int main(int argc, char** argv) {
  std::string devices = "cpu:0,cpu:1", trace;
  int64_t size = 500, times = 20, turns = 5;
  CLI::App app("Shows what overlaps: the program and its devices, devices, copies");
  app.add_option("--device", devices, "The devices; copies go from the first to the last")
      ->capture_default_str();
  app.add_option("--size", size, "Rows and columns of the matrices")->capture_default_str();
  app.add_option("--times", times, "How many products a chain has")->capture_default_str();
  app.add_option("--turns", turns, "How often each time is taken; the best counts")
      ->capture_default_str();
  for (auto* number : {"--size", "--times", "--turns"})
    app.get_option(number)->check(CLI::Range(1, 1 << 14));
  app.add_option("--trace", trace, "Write a trace for https://ui.perfetto.dev into this file");
  CLI11_PARSE(app, argc, argv);
  try {
    show(parse_devices(devices), size, times, turns, trace);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "async: %s\n", e.what());
    return 1;
  }
}
