// What the cuda plugin is held to, on cuda:0. Names are those of torch_cuda.py and ceilings.cu; compare_cuda.py sets them side by
// side.
#include <chrono>
#include <cstdlib>
#include <memory>

#include "../subject.h"

using namespace tenon;

namespace {

const Device gpu("cuda", 0);
// Bodies queue this many runs before they wait, so that the wait is not what is timed.
constexpr int64_t repeats = 20;

Tensor random(const Shape& shape, DType dtype = f32) { return rand(shape, {.device = gpu}).to(dtype); }

template <class F>
void repeated(const std::string& name, F prepare) {
  bench::subject(name, repeats, [prepare] {
    auto body = prepare();
    return [body]() mutable {
      for (int64_t i = 0; i < repeats; ++i) body();
      synchronize(gpu);
    };
  });
}

// 256 MiB a tensor: several times what any cache holds.
void memory_bound() {
  const Shape big{64 << 20}, rows{64 << 10, 1024};
  repeated("pointwise/add", [=] { return [a = random(big), b = random(big)] { a + b; }; });
  repeated("pointwise/x*2+1", [=] { return [a = random(big)] { a * 2 + 1; }; });
  repeated("pointwise/gelu", [=] { return [a = random(big)] { gelu(a); }; });
  repeated("pointwise/add_row", [=] { return [a = random(rows), b = random({1024})] { a + b; }; });
  repeated("copy/clone", [=] { return [a = random(big)] { a.clone(); }; });
  repeated("copy/transposed", [] { return [a = random({8192, 8192})] { a.t().contiguous(); }; });
  repeated("reduce/sum", [=] { return [a = random(big)] { a.sum(); }; });
  repeated("reduce/sum_rows", [=] { return [a = random(rows)] { a.sum({1}); }; });
  repeated("reduce/sum_columns", [=] { return [a = random(rows)] { a.sum({0}); }; });
  repeated("softmax/rows_1024", [=] { return [a = random(rows)] { softmax(a, 1); }; });
  repeated("softmax/rows_32768", [] { return [a = random({2048, 32768})] { softmax(a, 1); }; });
  repeated("norm/layer_norm",
           [=] { return [a = random(rows), w = random({1024}), b = random({1024})] { layer_norm(a, {1024}, w, b); }; });
  repeated("random/dropout", [=] { return [a = random(big)] { dropout(a, 0.5, true); }; });
}

// 64 tensors of 4 MiB.
template <class Optimizer, class Options>
void optimizer(const std::string& name, Options options) {
  repeated(name, [options] {
    std::vector<Tensor> parameters;
    for (int i = 0; i < 64; ++i) {
      parameters.push_back(random({1 << 20}).requires_grad_());
      parameters.back().set_grad(random({1 << 20}));
    }
    return [o = std::make_shared<Optimizer>(parameters, options)] { o->step(); };
  });
}

void products() {
  for (int64_t n : {4096, 8192}) {
    auto product = [n](DType dtype, const char* precision) {
      return [=] {
        set_float32_matmul_precision(precision);
        return [a = random({n, n}, dtype), b = random({n, n}, dtype)] { matmul(a, b); };
      };
    };
    const std::string size = std::to_string(n);
    repeated("matmul/" + size + "_bf16", product(bf16, "highest"));
    repeated("matmul/" + size + "_tf32", product(f32, "high"));
    repeated("matmul/" + size + "_f32", product(f32, "highest"));
  }
}

void convolutions() {
  auto conv = [](const Shape& x, const Shape& w, DType dtype) {
    return [=] { return [a = random(x, dtype), b = random(w, dtype)] { conv2d(a, b, {}, {.padding = {1, 1}}); }; };
  };
  repeated("conv/64x56x56_f32", conv({64, 64, 56, 56}, {64, 64, 3, 3}, f32));
  repeated("conv/64x56x56_bf16", conv({64, 64, 56, 56}, {64, 64, 3, 3}, bf16));
}

nn::Sequential lenet() {
  return nn::Sequential(nn::Conv2d(1, 6, 5, {.padding = 2}), nn::Sigmoid(), nn::AvgPool2d(2, {.stride = 2}), nn::Conv2d(6, 16, 5),
                        nn::Sigmoid(), nn::AvgPool2d(2, {.stride = 2}), nn::Flatten(), nn::Linear(400, 120), nn::Sigmoid(),
                        nn::Linear(120, 84), nn::Sigmoid(), nn::Linear(84, 10));
}

// A training step of LeNet on a batch of 256 pictures that lies on the device.
auto lenet_step() {
  auto net = lenet();
  net.to(gpu);
  auto optimizer = std::make_shared<optim::SGD>(net.parameters(), optim::SGDOptions{.lr = 0.1});
  Tensor x = random({256, 1, 28, 28}), y = randint(0, 10, {256}, {.dtype = i64, .device = gpu});
  return [=]() mutable {
    optimizer->zero_grad();
    cross_entropy(net(x), y).backward();
    optimizer->step();
  };
}

void steps() {
  repeated("training/lenet_256", lenet_step);
  repeated("training/lenet_256_captured", [] {
    auto step = lenet_step();
    for (int i = 0; i < 3; ++i) step();
    auto graph = std::make_shared<StreamGraph>(StreamGraph::capture(gpu, step));
    return [graph, step] { graph->replay(); };
  });
}

// What a queued operator costs the host: bursts that the device's queue can hold, timed until the last is queued.
void queued(benchmark::State& state) {
  constexpr int burst = 200;
  Tensor a = random({1}), b = random({1});
  for (auto _ : state) {
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < burst; ++i) benchmark::DoNotOptimize(a + b);
    state.SetIterationTime(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    synchronize(gpu);
  }
  state.SetItemsProcessed(state.iterations() * burst);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (device_count("cuda") == 0) return 0;
  } catch (const Error& e) {
    std::fprintf(stderr, "cuda_bench: %s\n", e.what());
    return 0;
  }
  benchmark::RegisterBenchmark("dispatch/queued_add", queued)->UseManualTime();
  steps();
  memory_bound();
  optimizer<optim::SGD>("optimizer/sgd_momentum", optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
  optimizer<optim::Adam>("optimizer/adam", optim::AdamOptions{.lr = 1e-3});
  products();
  convolutions();
  return bench::run(argc, argv);
}
