// Whole steps: forward, loss, backward, update.
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "subject.h"

using namespace tenon;

namespace {

nn::Sequential lenet() {
  return nn::Sequential(nn::Conv2d(1, 6, 5, {.padding = 2}), nn::Sigmoid(),
                        nn::AvgPool2d(2, {.stride = 2}), nn::Conv2d(6, 16, 5), nn::Sigmoid(),
                        nn::AvgPool2d(2, {.stride = 2}), nn::Flatten(), nn::Linear(400, 120),
                        nn::Sigmoid(), nn::Linear(120, 84), nn::Sigmoid(), nn::Linear(84, 10));
}
nn::Sequential mlp() {
  return nn::Sequential(nn::Flatten(), nn::Linear(784, 256), nn::ReLU(), nn::Linear(256, 10));
}

// A small ResNet for pictures of 32 x 32.
struct Block : nn::Module<Block> {
  nn::Conv2d first, second;
  nn::BatchNorm2d norm1, norm2;

  explicit Block(int64_t c)
      : first(c, c, 3, {.padding = 1}), second(c, c, 3, {.padding = 1}), norm1(c), norm2(c) {}
  static constexpr int num_fields = 4;
  Tensor forward(const Tensor& x) { return relu(norm2(second(relu(norm1(first(x))))) + x); }
};
struct ResNet : nn::Module<ResNet> {
  nn::Conv2d stem{3, 32, 3, {.padding = 1}}, down{32, 64, 3, {.stride = 2, .padding = 1}};
  Block narrow{32}, wide{64};
  nn::Linear head{64, 10};

  Tensor forward(const Tensor& x) {
    const Tensor y = wide(relu(down(max_pool2d(narrow(relu(stem(x))), 2))));
    return head(flatten(adaptive_avg_pool2d(y, 1), 1));
  }
};
// One step in row-major order or with the channels last.
auto resnet_step(MemoryFormat format) {
  auto net = std::make_shared<ResNet>();
  net->to(format);
  auto optimizer = std::make_shared<optim::SGD>(net->parameters(),
                                                optim::SGDOptions{.lr = 0.01, .momentum = 0.9});
  Tensor x = rand({16, 3, 32, 32}).to(format), y = randint(0, 10, {16});
  return [=] {
    optimizer->zero_grad();
    cross_entropy((*net)(x), y).backward();
    optimizer->step();
    synchronize();
  };
}

// One step on a batch of pictures. The body owns net and optimizer.
template <class Optimizer, class Net, class Options>
auto step(Net net, const Options& options, int64_t batch = 256) {
  auto optimizer = std::make_shared<Optimizer>(net.parameters(), options);
  Tensor x = rand({batch, 1, 28, 28}), y = randint(0, 10, {batch});
  return [=]() mutable {
    optimizer->zero_grad();
    cross_entropy(net(x), y).backward();
    optimizer->step();
    synchronize();
  };
}

void steps() {
  const optim::SGDOptions sgd{.lr = 0.1};
  bench::subject("training/lenet_64", [=] { return step<optim::SGD>(lenet(), sgd, 64); });
  bench::subject("training/mlp_64", [=] { return step<optim::SGD>(mlp(), sgd, 64); });
  bench::subject("training/lenet_256", [=] { return step<optim::SGD>(lenet(), sgd); });
  bench::subject("training/lenet_256_adam",
                 [] { return step<optim::Adam>(lenet(), optim::AdamOptions{.lr = 1e-3}); });
  bench::subject("training/mlp_256", [=] { return step<optim::SGD>(mlp(), sgd); });
  bench::subject("training/resnet_16", [] { return resnet_step(contiguous_format); });
  bench::subject("training/resnet_16_channels_last", [] { return resnet_step(channels_last); });
  bench::subject("training/lenet_256_two_devices", [=] {
    return step<optim::SGD>(nn::DataParallel(lenet(), parse_devices("cpu:0,cpu:1")), sgd);
  });
}

double seconds_of(auto&& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// What one thing takes of the time of another, as a ratio of medians. They take turns, so that both
// see the same machine.
void compare(benchmark::State& state, auto&& seconds, auto&& seconds_of_other) {
  std::vector<double> times[2];
  for (auto _ : state) {
    times[0].push_back(seconds_of_other());
    times[1].push_back(seconds());
  }
  for (auto& t : times)
    std::nth_element(t.begin(), t.begin() + static_cast<std::ptrdiff_t>(t.size() / 2), t.end());
  state.counters["ratio"] = times[1][times[1].size() / 2] / times[0][times[0].size() / 2];
  state.SetItemsProcessed(state.iterations());
}

// What DataParallel costs on one device.
void wrapper_overhead(benchmark::State& state) {
  const optim::SGDOptions sgd{.lr = 0.1};
  auto plain = step<optim::SGD>(lenet(), sgd);
  auto wrapped = step<optim::SGD>(nn::DataParallel(lenet(), parse_devices("cpu:0")), sgd);
  compare(
      state, [&] { return seconds_of(wrapped); }, [&] { return seconds_of(plain); });
}

// What steps take while a profiler records them.
void profiler_overhead(benchmark::State& state, auto net, int64_t batch, int steps) {
  auto body = step<optim::SGD>(net, optim::SGDOptions{.lr = 0.1}, batch);
  const auto some = [&] {
    for (int i = 0; i < steps; ++i) body();
  };
  some();
  const auto recorded = [&] {
    profiler::Profiler profiler;
    return seconds_of(some);
  };
  compare(state, recorded, [&] { return seconds_of(some); });
}

// How much of the time of sums of gradients lies in the time in which a device does something else,
// as a profiler sees it.
double hidden_in_trace(const std::vector<profiler::Event>& events) {
  const auto is_sum = [](const profiler::Event& e) {
    return e.part_of.find("sum of gradients") != std::string::npos;
  };
  std::vector<std::pair<double, double>> busy;  // as they begin, joined where they overlap
  for (auto& e : events) {
    if (e.kind != profiler::Kind::op || is_sum(e)) continue;
    if (busy.empty() || e.began > busy.back().second)
      busy.emplace_back(e.began, e.ended);
    else
      busy.back().second = std::max(busy.back().second, e.ended);
  }
  double all = 0, hidden = 0;
  for (auto& e : events) {
    if (!is_sum(e)) continue;
    all += e.ended - e.began;
    for (auto& [began, ended] : busy)
      hidden += std::max(0.0, std::min(ended, e.ended) - std::max(began, e.began));
  }
  return hidden / all;
}

// How much of the sums of gradients overlaps with the backward pass on two devices: the times of
// passes that sum in buckets, at their end, and not at all, which take turns; the least of each.
// And the same as the trace of one more pass shows it.
void reduction(benchmark::State& state) {
  const auto net = [] {
    nn::Sequential layers;
    for (int i = 0; i < 12; ++i) layers.add(nn::Linear(1024, 1024)), layers.add(nn::ReLU());
    return layers;
  };
  const auto devices = parse_devices("cpu:0,cpu:1");
  const int64_t rows = state.range(0);
  const Tensor x = rand({2 * rows, 1024});
  nn::DataParallel at_end(net(), devices, {.bucket_cap_mb = 1e6});
  nn::DataParallel in_buckets(net(), devices,
                              {.bucket_cap_mb = static_cast<double>(state.range(1))});
  auto apart = nn::parallel::replicate(at_end.module, devices);
  const auto parts = nn::parallel::scatter(x, devices);
  const auto timed = [](auto& parameters, const Tensor& loss) {
    for (auto& p : parameters) p.set_grad(Tensor());
    synchronize();
    return seconds_of([&] {
      loss.backward();
      synchronize();
    });
  };
  std::vector<Tensor> parameters[3] = {apart[0].parameters(), at_end.parameters(),
                                       in_buckets.parameters()};
  for (auto& p : apart[1].parameters()) parameters[0].push_back(p);
  double least[3] = {1e9, 1e9, 1e9};
  for (auto _ : state) {
    const Tensor sums[3] = {apart[0](parts[0]).sum() + apart[1](parts[1]).sum().to(devices[0]),
                            at_end(x).sum(), in_buckets(x).sum()};
    for (int i = 0; i < 3; ++i) least[i] = std::min(least[i], timed(parameters[i], sums[i]));
  }
  state.counters["at_end"] = least[1] / least[0];
  state.counters["in_buckets"] = least[2] / least[0];
  state.counters["hidden"] = (least[1] - least[2]) / (least[1] - least[0]);
  const Tensor loss = in_buckets(x).sum();
  synchronize();
  profiler::Profiler profiler;
  timed(parameters[2], loss);
  profiler.stop();
  state.counters["hidden_in_trace"] = hidden_in_trace(profiler.events());
}

void forward() {
  bench::subject("training/mlp_forward_1", 100, [] {
    nn::Sequential net(nn::Linear(512, 256), nn::ReLU(), nn::Linear(256, 128), nn::ReLU(),
                       nn::Linear(128, 2));
    Tensor x = rand({1, 512});
    return [=]() mutable {
      NoGrad guard;
      for (int i = 0; i < 100; ++i) net(x).wait();
    };
  });
}

template <class Make>
void optimizer(const std::string& name, Make make) {
  bench::subject("optimizer/" + name, [=] {
    std::vector<Tensor> parameters;
    for (int i = 0; i < 20; ++i) parameters.push_back(rand({512, 1024}).requires_grad_());
    for (auto& p : parameters) p.set_grad(rand({512, 1024}));
    return [opt = make(parameters)] {
      opt->step();
      synchronize();
    };
  });
}

}  // namespace

int main(int argc, char** argv) {
  steps();
  benchmark::RegisterBenchmark("training/wrapper_overhead", wrapper_overhead)
      ->UseRealTime()
      ->Iterations(200);
  const auto recorded = [](const char* name, auto net, int64_t batch, int steps) {
    benchmark::RegisterBenchmark(
        (std::string("training/profiler_overhead/") + name).c_str(),
        [=](benchmark::State& state) { profiler_overhead(state, net, batch, steps); })
        ->UseRealTime()
        ->Iterations(200);
  };
  recorded("lenet_64", lenet(), 64, 5);
  recorded("mlp_64", mlp(), 64, 10);
  recorded("mlp_1", mlp(), 1, 50);
  benchmark::RegisterBenchmark("parallel/reduction", reduction)
      ->UseRealTime()
      ->Iterations(40)
      ->ArgsProduct({{16, 64}, {25, 8, 4}});
  forward();
  optimizer("sgd_10M", [](auto& p) {
    return std::make_shared<optim::SGD>(p, optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
  });
  optimizer("adam_10M", [](auto& p) {
    return std::make_shared<optim::Adam>(p, optim::AdamOptions{.lr = 1e-3});
  });
  return bench::run(argc, argv);
}
