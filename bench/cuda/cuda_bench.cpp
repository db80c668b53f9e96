// What the cuda plugin is held to, on cuda:0. Names are those of torch_cuda.py and ceilings.cu;
// compare_cuda.py sets them side by side.
#include <chrono>
#include <cstdlib>
#include <memory>

#include "../subject.h"

using namespace tenon;

namespace {

const Device gpu("cuda", 0);
// Bodies queue this many runs before they wait, so that the wait is not what is timed.
constexpr int64_t kRepeats = 20;

// In [-0.5, 0.5), the same that torch_cuda.py makes.
Tensor values(const Shape& shape, DType dtype = f32) {
  Tensor x = arange(0, static_cast<double>(shape.numel()), 1, {.dtype = f64, .device = gpu}) *
             0.6180339887498949;
  return (x - floor(x) - 0.5).to(dtype).reshape(shape);
}

// Products and convolutions of f32 in TF32, or in f32.
void precise(const std::string& precision) {
  set_float32_matmul_precision(precision == "tf32" ? "high" : "highest");
}

template <class F>
void repeated(const std::string& name, F prepare) {
  bench::subject(name, kRepeats, [prepare] {
    auto body = prepare();
    return [body]() mutable {
      for (int64_t i = 0; i < kRepeats; ++i) body();
      synchronize(gpu);
    };
  });
}

// 256 MiB a tensor: several times what any cache holds.
void memory_bound() {
  const Shape big{64 << 20}, rows{64 << 10, 1024};
  repeated("pointwise/add", [=] { return [a = values(big), b = values(big)] { a + b; }; });
  repeated("pointwise/x*2+1", [=] { return [a = values(big)] { a * 2 + 1; }; });
  repeated("pointwise/gelu", [=] { return [a = values(big)] { gelu(a); }; });
  repeated("pointwise/add_row", [=] { return [a = values(rows), b = values({1024})] { a + b; }; });
  repeated("copy/clone", [=] { return [a = values(big)] { a.clone(); }; });
  repeated("copy/transposed", [] { return [a = values({8192, 8192})] { a.t().contiguous(); }; });
  repeated("reduce/sum", [=] { return [a = values(big)] { a.sum(); }; });
  repeated("reduce/sum_rows", [=] { return [a = values(rows)] { a.sum({1}); }; });
  repeated("reduce/sum_columns", [=] { return [a = values(rows)] { a.sum({0}); }; });
  repeated("softmax/rows_1024", [=] { return [a = values(rows)] { softmax(a, 1); }; });
  repeated("softmax/rows_32768", [] { return [a = values({2048, 32768})] { softmax(a, 1); }; });
  repeated("norm/layer_norm", [=] {
    return
        [a = values(rows), w = values({1024}), b = values({1024})] { layer_norm(a, {1024}, w, b); };
  });
  repeated("random/dropout", [=] { return [a = values(big)] { dropout(a, 0.5, true); }; });
}

// 64 tensors of 4 MiB.
template <class Optimizer, class Options>
void optimizer(const std::string& name, Options options) {
  repeated(name, [options] {
    std::vector<Tensor> parameters;
    for (int i = 0; i < 64; ++i) {
      parameters.push_back(values({1 << 20}).requires_grad_());
      parameters.back().set_grad(values({1 << 20}));
    }
    return [o = std::make_shared<Optimizer>(parameters, options)] { o->step(); };
  });
}

void products() {
  for (int64_t n : {4096, 8192}) {
    auto product = [n](DType dtype, const char* precision) {
      return [=] {
        precise(precision);
        return [a = values({n, n}, dtype), b = values({n, n}, dtype)] { matmul(a, b); };
      };
    };
    const std::string size = std::to_string(n);
    repeated("matmul/" + size + "_bf16", product(bf16, "f32"));
    repeated("matmul/" + size + "_tf32", product(f32, "tf32"));
    repeated("matmul/" + size + "_f32", product(f32, "f32"));
  }
}

void convolutions() {
  auto conv = [](DType dtype, const char* precision) {
    return [=] {
      precise(precision);
      return [a = values({64, 64, 56, 56}, dtype), b = values({64, 64, 3, 3}, dtype)] {
        conv2d(a, b, {}, {.padding = {1, 1}});
      };
    };
  };
  repeated("conv/64x56x56_tf32", conv(f32, "tf32"));
  repeated("conv/64x56x56_f32", conv(f32, "f32"));
  repeated("conv/64x56x56_bf16", conv(bf16, "f32"));
}

nn::Sequential lenet() {
  return nn::Sequential(nn::Conv2d(1, 6, 5, {.padding = 2}), nn::Sigmoid(),
                        nn::AvgPool2d(2, {.stride = 2}), nn::Conv2d(6, 16, 5), nn::Sigmoid(),
                        nn::AvgPool2d(2, {.stride = 2}), nn::Flatten(), nn::Linear(400, 120),
                        nn::Sigmoid(), nn::Linear(120, 84), nn::Sigmoid(), nn::Linear(84, 10));
}

Tensor labels() {
  std::vector<int64_t> y(256);
  for (size_t i = 0; i < y.size(); ++i) y[i] = static_cast<int64_t>(i % 10);
  return tensor(y).to(gpu);
}

// A training step of LeNet on a batch of 256 pictures that lies on the device.
auto lenet_step(const std::string& precision) {
  precise(precision);
  auto net = lenet();
  net.to(gpu);
  auto optimizer = std::make_shared<optim::SGD>(net.parameters(), optim::SGDOptions{.lr = 0.1});
  Tensor x = values({256, 1, 28, 28}), y = labels();
  return [=]() mutable {
    optimizer->zero_grad();
    cross_entropy(net(x), y).backward();
    optimizer->step();
  };
}

void steps() {
  for (const std::string precision : {"tf32", "f32"}) {
    repeated("training/lenet_256_" + precision, [=] { return lenet_step(precision); });
    repeated("training/lenet_256_captured_" + precision, [=] {
      auto step = lenet_step(precision);
      for (int i = 0; i < 3; ++i) step();
      auto graph = std::make_shared<StreamGraph>(StreamGraph::capture(gpu, step));
      return [graph, step] { graph->replay(); };
    });
  }
}

// What a queued operator costs the host: bursts that the device's queue can hold, timed until the
// last is queued.
void queued(benchmark::State& state) {
  constexpr int burst = 200;
  Tensor a = values({1}), b = values({1});
  for (auto _ : state) {
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < burst; ++i) benchmark::DoNotOptimize(a + b);
    state.SetIterationTime(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
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
