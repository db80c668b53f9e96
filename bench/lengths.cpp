// A training that never sees a sequence length twice in a row: time and memory of the steps, of
// which each needs new plans.
//   lengths [steps]   (default: 20000)
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include <tenon/tenon.h>

using namespace tenon;

namespace {

struct Recurrent : nn::Module<Recurrent> {
  nn::LSTM lstm{16, 32};
  nn::Linear out{32, 8};
  Tensor forward(const Tensor& x) { return out(std::get<0>(lstm(x))).mean(0); }
};
struct Attending : nn::Module<Attending> {
  nn::MultiheadAttention attention{16, 4};
  nn::Linear out{16, 8};
  Tensor forward(const Tensor& x) { return out(attention(x, x, x).first).mean(0); }
};

double resident_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::atof(line.c_str() + 6) / 1024;
  return 0;
}

// Prints a line for each tenth of the steps. The lengths are 1 to `longest`, in an order in which
// neighbours differ much; with a batch that changes too, a pair comes back after many steps.
template <class Model>
void train(const char* name, int steps, int64_t longest, int64_t batches) {
  Model model;
  optim::SGD optimizer(model.parameters(), {.lr = 0.01});
  std::printf("%s\n%10s %12s %14s %14s\n", name, "steps", "ms a step", "allocated MiB",
              "resident MiB");
  auto begin = std::chrono::steady_clock::now();
  for (int i = 1; i <= steps; ++i) {
    const int64_t length = 1 + i * int64_t{617} % longest, batch = 1 + i % batches;
    const Tensor x = randn({length, batch, 16}), target = randint(0, 8, {batch});
    optimizer.zero_grad();
    cross_entropy(model(x), target).backward();
    optimizer.step();
    if (i % (steps / 10) != 0) continue;
    synchronize();
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - begin).count();
    std::printf("%10d %12.3f %14.2f %14.1f\n", i, seconds * 1e3 / (steps / 10),
                static_cast<double>(memory_stats(default_device()).allocated) / (1 << 20),
                resident_mib());
    std::fflush(stdout);
    begin = now;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 20000;
  if (steps < 10) return std::fprintf(stderr, "lengths: wants at least 10 steps\n"), 2;
  train<Recurrent>("lstm", steps, 61, 7);
  train<Attending>("attention", steps, 251, 7);
}
