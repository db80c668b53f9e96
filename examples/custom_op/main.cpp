// Fits a curve with a model that uses mylib::swish2. TENON_PLUGIN_PATH names the folder of the
// kernel; without it the operator is decomposed, and TENON_TRACE=ops shows which of them happens.
#include <cstdio>
#include <exception>

#include "swish2.h"

namespace {

using namespace tenon;

struct Net : nn::Module<Net> {
  nn::Linear first{1, 32}, second{32, 1};
  Tensor forward(const Tensor& x) { return second(mylib::swish2(first(x), 1.5)); }
};

}  // namespace

int main() try {
  manual_seed(1);
  Net net;
  optim::Adam optimizer(net.parameters(), 1e-2);
  const Tensor x = arange(-2, 2, 1.0 / 32).unsqueeze(1), y = sin(x * 2);
  for (int step = 0; step < 400; ++step) {
    optimizer.zero_grad();
    const Tensor loss = mse_loss(net(x), y);
    loss.backward();
    optimizer.step();
    if (step % 100 == 99) std::printf("step %d: loss %.5f\n", step + 1, loss.item());
  }
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "custom_op: %s\n", e.what());
  return 1;
}
