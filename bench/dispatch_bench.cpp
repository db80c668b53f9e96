// What a call costs where the work is next to nothing.
#include <algorithm>
#include <chrono>

#include <tenon/plugins/host/registry.h>

#include "subject.h"

using namespace tenon;

namespace {

constexpr int64_t kRuns = 1000;

template <class F>
double seconds_each(F&& f) {
  const auto began = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < kRuns; ++i) f();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  return took.count() / double(kRuns);
}

// Runs a plan of one element through CheckedApi, which every call of a plugin goes through, and by
// its own function. They take turns, also with the addition of one element of a program; `ratio` is
// that of the least times of both, and `of_add_1` what the first takes more, as a part of the
// addition.
void checked_run(benchmark::State& state) {
  auto& backend = plugins::registry().load("cpu");
  const auto& api = backend.api();
  tn_device* const device = backend.open_device(0);
  tn_tensor_desc one{sizeof one, TN_F32, 1, {1}, {1}};
  const tn_tensor_desc* const descs[] = {&one};
  const tn_op_request request{sizeof request, "abs", 1, descs, 1, descs, nullptr, 0, nullptr, 0};
  tn_plan* plan = nullptr;
  if (tn_error* error = api.plan_create(device, &request, &plan))
    return state.SkipWithError(plugins::take_message(error).c_str());
  float x = -1, y = 0;
  void *const in[] = {&x}, *const out[] = {&y};
  const tn_run run{sizeof run, in, out, nullptr, nullptr, nullptr, 1, 1, 0, nullptr};
  const Tensor a = ones({1}), b = ones({1});
  double plain = 1, checked = 1, add = 1;
  for (auto _ : state) {
    plain = std::min(plain, seconds_each([&] { benchmark::DoNotOptimize(plan->run(plan, &run)); }));
    checked =
        std::min(checked, seconds_each([&] { benchmark::DoNotOptimize(api.run(plan, &run)); }));
    add = std::min(add, seconds_each([&] { benchmark::DoNotOptimize(a + b); }));
    synchronize();
  }
  api.destroy(plan);
  state.counters["plain_ns"] = plain * 1e9;
  state.counters["checked_ns"] = checked * 1e9;
  state.counters["ratio"] = checked / plain;
  state.counters["of_add_1"] = (checked - plain) / add;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int64_t many = 1000;
  auto adds = [](bool grad) {
    return [grad] {
      Tensor a = ones({1}), b = ones({1});
      a.requires_grad_(grad);
      return [a, b] {
        for (int64_t i = 0; i < many; ++i) benchmark::DoNotOptimize(a + b);
        synchronize();
      };
    };
  };
  bench::subject("dispatch/add_1", many, adds(false));
  bench::subject("dispatch/add_1_grad", many, adds(true));
  bench::subject("dispatch/add_1_backward", many, [] {
    Tensor a = ones({1}).requires_grad_();
    return [a] {
      for (int64_t i = 0; i < many; ++i) (a + a).backward();
      synchronize();
    };
  });
  bench::subject("dispatch/empty_256x256", many, [] {
    return [] {
      for (int64_t i = 0; i < many; ++i) benchmark::DoNotOptimize(empty({256, 256}));
    };
  });
  bench::subject("dispatch/queue_10000", 10000, [] {
    Tensor start = zeros({8});
    return [start] {
      Tensor x = start;
      for (int i = 0; i < 10000; ++i) x = x + 1;
      x.wait();
    };
  });
  bench::subject("dispatch/view", many, [] {
    Tensor x = zeros({64, 64});
    return [x] {
      for (int64_t i = 0; i < many; ++i) benchmark::DoNotOptimize(x.transpose(0, 1));
    };
  });
  benchmark::RegisterBenchmark("dispatch/checked_run", checked_run)->UseRealTime();
  return bench::run(argc, argv);
}
