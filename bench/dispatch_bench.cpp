// What a call costs where the work is next to nothing.
#include "subject.h"

using namespace tenon;

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
  return bench::run(argc, argv);
}
