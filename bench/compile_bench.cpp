// Compiled functions beside the same functions as they are. The two take turns, so that both see
// the same machine; `ratio` is that of their least times. docs/compile.md says what a program
// saves. A third one is compiled without the passes `residuals` and `activations`, and `folding` is
// the ratio to it. `making_us` is what the calls take until there is a program, more than plain
// ones. bench/compare_compile.py prints them beside torch.compile. Those of groups/ are compiled
// with and without the pass `pointwise` instead, and `fusing` is their ratio.
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "subject.h"

using namespace tenon;

namespace {

// Times a function and what is compiled of it. What is timed does so many calls and waits for each
// result, and at last for what a step does after its loss.
template <class Function, class... Arguments>
void beside(benchmark::State& state, int calls, const Function& function,
            const Arguments&... arguments) {
  auto with = compile(function),
       without = compile(function, {.passes = {.residuals = false, .activations = false}});
  const auto plain = [&] { return function(arguments...); };
  const auto compiled = [&] { return with(arguments...); };
  const auto apart = [&] { return without(arguments...); };
  const auto timed = [calls](auto& body) {
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) body().wait();
    synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() / calls;
  };
  for (int i = 0; i < 4; ++i) plain().wait(), apart().wait();
  const auto began = std::chrono::steady_clock::now();
  constexpr int kMaking = 3;
  for (int i = 0; i < kMaking; ++i) compiled().wait();
  synchronize();
  const std::chrono::duration<double> making = std::chrono::steady_clock::now() - began;
  compiled().wait();
  double least[3] = {1e9, 1e9, 1e9};
  for (auto _ : state) {
    least[0] = std::min(least[0], timed(plain));
    least[1] = std::min(least[1], timed(compiled));
    least[2] = std::min(least[2], timed(apart));
  }
  state.counters["plain_us"] = least[0] * 1e6;
  state.counters["compiled_us"] = least[1] * 1e6;
  state.counters["making_us"] = std::max(0.0, making.count() - kMaking * least[0]) * 1e6;
  state.counters["ratio"] = least[1] / least[0];
  state.counters["folding"] = least[1] / least[2];
}

nn::Sequential chapter() {
  return nn::Sequential(nn::Linear(512, 256), nn::ReLU(), nn::Linear(256, 128), nn::ReLU(),
                        nn::Linear(128, 2));
}
nn::Sequential lenet() {
  return nn::Sequential(nn::Conv2d(1, 6, 5, {.padding = 2}), nn::ReLU(), nn::MaxPool2d(2),
                        nn::Conv2d(6, 16, 5), nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(),
                        nn::Linear(400, 120), nn::ReLU(), nn::Linear(120, 84), nn::ReLU(),
                        nn::Linear(84, 10));
}

void infer(benchmark::State& state, nn::Sequential net, const Tensor& x, int calls) {
  net.eval();
  const NoGrad guard;
  beside(
      state, calls, [&](const Tensor& input) { return net(input); }, x);
}
void forward(benchmark::State& state) {
  infer(state, chapter(), randn({state.range(0), 512}), 100);
}
void lenet_forward(benchmark::State& state) {
  infer(state, lenet(), randn({state.range(0), 1, 28, 28}), 10);
}

// The end of a block of a residual network, and a part of a transformer.
void norm_and_sum(benchmark::State& state) {
  nn::BatchNorm2d norm(state.range(0));
  norm.eval();
  const NoGrad guard;
  const Tensor x = randn({32, state.range(0), state.range(1), state.range(1)});
  beside(
      state, 10, [&](const Tensor& a, const Tensor& b) { return relu(norm(a) + b); }, x,
      randn(x.shape()));
}
void linear_and_sum(benchmark::State& state) {
  const Tensor w = randn({state.range(1), state.range(1)}), b = randn({state.range(1)});
  const NoGrad guard;
  beside(
      state, 10, [&](const Tensor& x, const Tensor& r) { return linear(x, w, b) + r; },
      randn({state.range(0), state.range(1)}), randn({state.range(0), state.range(1)}));
}
// A convolution of a batch that keeps its channels and the size of its images; without a batch
// norm, which would take the sum and the activation itself.
void conv_with_relu(benchmark::State& state, bool adds) {
  const int64_t channels = state.range(1), side = state.range(2);
  const Tensor w = randn({channels, channels, 3, 3}) * 0.05, b = randn({channels}),
               x = randn({state.range(0), channels, side, side});
  const NoGrad guard;
  beside(
      state, 5,
      [&](const Tensor& a, const Tensor& r) {
        const Tensor y = conv2d(a, w, b, {.padding = 1});
        return relu(adds ? y + r : y);
      },
      x, randn(x.shape()));
}
void conv_and_relu(benchmark::State& state) { conv_with_relu(state, false); }
void conv_and_sum(benchmark::State& state) { conv_with_relu(state, true); }

// Operators that do next to nothing: what is left is the way to them.
void four_operators(benchmark::State& state) {
  const Tensor x = randn({state.range(0)});
  beside(
      state, 1000, [](const Tensor& a) { return ((a + 1.0) * 2.0 - a).neg(); }, x);
}

// gelu in the form with erf, written from its parts.
Tensor gelu_parts(const Tensor& a) { return a * 0.5 * (erf(a * 0.7071067811865476) + 1.0); }
void gelu_of_parts(benchmark::State& state) {
  const Tensor x = randn({state.range(0)});
  beside(state, 1, gelu_parts, x);
}

// Times what is compiled of a function with and without groups.
template <class Function, class... Arguments>
void groups(benchmark::State& state, const Function& function, const Arguments&... arguments) {
  const NoGrad guard;
  const int64_t numel = state.range(0) * state.range(1);
  const int calls = static_cast<int>(std::clamp<int64_t>(1'000'000 / numel, 1, 300));
  auto together = compile(function, {.measure = false}),
       apart = compile(function, {.passes = {.pointwise = false}, .measure = false});
  double least[2] = {1e9, 1e9};
  const auto time = [&](auto& compiled, double& best) {
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) compiled(arguments...).wait();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    best = std::min(best, took.count() / calls);
  };
  for (int i = 0; i < 4; ++i) together(arguments...).wait(), apart(arguments...).wait();
  for (auto _ : state) time(together, least[0]), time(apart, least[1]);
  state.counters["together_us"] = least[0] * 1e6;
  state.counters["apart_us"] = least[1] * 1e6;
  state.counters["fusing"] = least[0] / least[1];
  double made = 0, kept_apart = 0;
  const std::string text = together.explain();
  for (size_t at = 0; (at = text.find(" fused: ", at)) != text.npos; ++at)
    ++(text.compare(at - 3, 3, "not") == 0 ? kept_apart : made);
  state.counters["groups"] = made;
  state.counters["kept_apart"] = kept_apart;
}

void group_of_gelu(benchmark::State& state) {
  groups(state, gelu_parts, randn({state.range(0), state.range(1)}));
}
void group_of_two(benchmark::State& state) {
  groups(
      state, [](const Tensor& a, const Tensor& b) { return (a + b) * 0.5; },
      randn({state.range(0), state.range(1)}), randn({state.range(0), state.range(1)}));
}
// A bias for each column, and a scale for each row.
void group_of_bias(benchmark::State& state) {
  groups(
      state, [](const Tensor& a, const Tensor& b, const Tensor& s) { return (a + b).relu() * s; },
      randn({state.range(0), state.range(1)}), randn({state.range(1)}), randn({state.range(0), 1}));
}
void group_of_norm(benchmark::State& state) {
  groups(
      state,
      [](const Tensor& a) {
        const Tensor centered = a - a.mean({-1}, true);
        return centered / ((centered * centered).mean({-1}, true) + 1e-5).sqrt();
      },
      randn({state.range(0), state.range(1)}));
}
void group_of_softmax(benchmark::State& state) {
  groups(
      state,
      [](const Tensor& a) {
        const Tensor e = (a - amax(a, {-1}, true)).exp();
        return e / e.sum({-1}, true);
      },
      randn({state.range(0), state.range(1)}));
}
void group_of_adam(benchmark::State& state) {
  const Shape shape{state.range(0), state.range(1)};
  Tensor m = zeros(shape), v = zeros(shape), w = randn(shape);
  groups(
      state,
      [=](const Tensor& g) mutable {
        m.mul_(0.9).add_(g * 0.1);
        v.mul_(0.999).add_(g * g * 0.001);
        w.sub_(m / (v.sqrt() + 1e-8) * 1e-3);
        return g.sum();
      },
      randn(shape));
}

template <class Optimizer, class Options>
void step(benchmark::State& state, nn::Sequential net, const Options& options, const Tensor& x,
          int64_t classes, int calls) {
  Optimizer optimizer(net.parameters(), options);
  const Tensor y = randint(0, classes, {x.size(0)});
  const auto plain = [&](const Tensor& images, const Tensor& labels) {
    optimizer.zero_grad();
    Tensor loss = cross_entropy(net(images), labels);
    loss.backward();
    optimizer.step();
    return loss;
  };
  beside(state, calls, plain, x, y);
}

void chapter_step(benchmark::State& state) {
  step<optim::SGD>(state, chapter(), optim::SGDOptions{.lr = 1e-4, .momentum = 0.9},
                   randn({state.range(0), 512}), 2, state.range(0) == 1 ? 50 : 5);
}
void lenet_step(benchmark::State& state) {
  step<optim::Adam>(state, lenet(), optim::AdamOptions{.lr = 1e-4},
                    randn({state.range(0), 1, 28, 28}), 10, 2);
}

}  // namespace

int main(int argc, char** argv) {
  manual_seed(1);
  benchmark::RegisterBenchmark("compile/four_operators", four_operators)->Arg(4)->UseRealTime();
  benchmark::RegisterBenchmark("compile/gelu_of_parts", gelu_of_parts)
      ->Arg(10'000'000)
      ->UseRealTime();
  benchmark::RegisterBenchmark("compile/forward", forward)->Arg(1)->Arg(64)->UseRealTime();
  benchmark::RegisterBenchmark("compile/lenet_forward", lenet_forward)->Arg(64)->UseRealTime();
  benchmark::RegisterBenchmark("compile/norm_and_sum", norm_and_sum)
      ->Args({64, 32})
      ->Args({512, 4})
      ->UseRealTime();
  benchmark::RegisterBenchmark("compile/linear_and_sum", linear_and_sum)
      ->Args({512, 256})
      ->Args({4096, 512})
      ->UseRealTime();
  for (auto& [name, f] : std::initializer_list<std::pair<const char*, void (*)(benchmark::State&)>>{
           {"compile/conv_and_relu", conv_and_relu}, {"compile/conv_and_sum", conv_and_sum}})
    benchmark::RegisterBenchmark(name, f)
        ->Args({32, 16, 32})
        ->Args({8, 64, 56})
        ->Args({1, 64, 56})
        ->Args({8, 256, 14})
        ->UseRealTime();
  benchmark::RegisterBenchmark("compile/step", chapter_step)->Arg(1)->Arg(256)->UseRealTime();
  benchmark::RegisterBenchmark("compile/lenet", lenet_step)->Arg(64)->Arg(256)->UseRealTime();
  using Subject = std::pair<const char*, void (*)(benchmark::State&)>;
  for (auto [name, subject] :
       {Subject("groups/gelu", group_of_gelu), Subject("groups/two", group_of_two),
        Subject("groups/bias", group_of_bias), Subject("groups/norm", group_of_norm),
        Subject("groups/softmax", group_of_softmax), Subject("groups/adam", group_of_adam)})
    benchmark::RegisterBenchmark(name, subject)
        ->ArgsProduct({{4, 64, 1024}, {8, 64, 256, 4096}})
        ->UseRealTime();
  return bench::run(argc, argv);
}
