// One-element additions in LibTorch from C++: the yardstick for dispatch, without Python's own
// cost. Built by compare.py against the PyTorch of its virtual environment. Prints {name: seconds}
// as JSON.
#include <chrono>
#include <cstdio>

#include <torch/torch.h>

namespace {

double seconds_per_add(const torch::Tensor& a, const torch::Tensor& b) {
  constexpr int count = 200000;
  for (int i = 0; i < 1000; ++i) (void)(a + b);
  auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) (void)(a + b);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / count;
}

}  // namespace

int main() {
  torch::set_num_threads(2);
  torch::Tensor a = torch::ones({1}), b = torch::ones({1}),
                c = torch::ones({1}, torch::requires_grad());
  double plain = seconds_per_add(a, b), grad = seconds_per_add(c, b);
  std::printf("{\"dispatch/add_1\": %.9f, \"dispatch/add_1_grad\": %.9f}\n", plain, grad);
}
