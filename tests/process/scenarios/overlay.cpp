// The onednn overlay at work when its process forks or ends. Where it is not built, cpu does the
// same work.
#include <atomic>
#include <cmath>
#include <thread>
#include <vector>

#include <unistd.h>

#include "scenarios.h"

using namespace tenon;

namespace {

// Work that the overlay takes: channels in blocks, and few rows by a wide weight.
struct Layers {
  Tensor images = rand({4, 32, 16, 16}), kernel = rand({64, 32, 3, 3}), rows = rand({32, 256}),
         weight = rand({256, 256});
  Tensor conv() const { return conv2d(images, kernel, {}, {.padding = 1}); }
  Tensor product() const { return linear(rows, weight); }
  // As the gradients of linear layers are. oneDNN compiles code for these when the first one runs.
  Tensor transposed() const { return matmul(rows.t(), rows); }
  // `size` makes plans that are new.
  static bool computes(int64_t size) {
    const Tensor x = ones({2, 16, size, size}), w = ones({32, 16, 3, 3}).requires_grad_();
    const Tensor y = conv2d(x, w, {}, {.padding = 0});
    sum(y).backward();
    const double places = static_cast<double>((size - 2) * (size - 2));
    return sum(y.to(f64)).item<double>() == 2 * 32 * places * 16 * 9 &&
           sum(w.grad().to(f64)).item<double>() == 2 * 32 * 16 * 9 * places;
  }
};

// After main, with plans that were made before, with copies of weights that are kept, and with
// plans that are new.
struct ComputesAtEnd {
  Layers* layers = nullptr;
  std::vector<float> conv, product, transposed;
  ~ComputesAtEnd() {
    if (!layers) return;
    MUST(layers->conv().to_vector<float>() == conv);
    MUST(layers->product().to_vector<float>() == product);
    MUST(layers->transposed().to_vector<float>() == transposed);
    MUST(Layers::computes(13));
    std::printf("computed\n");
    std::fflush(stdout);
  }
};
ComputesAtEnd computes_at_end;

}  // namespace

SCENARIO(child_of_a_process_whose_overlay_computes) {
  Layers layers;
  const auto conv = layers.conv().to_vector<float>(), product = layers.product().to_vector<float>();
  std::vector<Tensor> queued;
  for (int i = 0; i < 20; ++i) queued.push_back(i % 2 ? layers.conv() : layers.product());
  const auto right = [&] {
    MUST(queued[18].to_vector<float>() == product && queued[19].to_vector<float>() == conv);
    for (int i = 0; i < 3; ++i)
      MUST(layers.conv().to_vector<float>() == conv &&
           layers.product().to_vector<float>() == product);
    layers.weight.fill_(1);
    for (float y : (layers.product() - layers.rows.sum({1}, true)).to_vector<float>())
      MUST(std::abs(y) < 1e-2f);
    MUST(Layers::computes(11));
  };
  MUST(in_child(right) == 0);
  right();
  return 0;
}

SCENARIO(children_of_a_process_that_makes_plans_of_the_overlay) {
  MUST(Layers::computes(4));  // what a process does but once is done before it forks
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&stop, i] {
      for (int64_t n = 5; !stop; n = n % 60 + 5) MUST(Layers::computes(n + i));
    });
  int failed = 0;
  for (int64_t i = 0; i < 10 && !failed; ++i)
    failed = in_child([&] { MUST(Layers::computes(5 + i) && Layers::computes(70 + i)); });
  stop = true;
  for (auto& t : threads) t.join();
  return failed;
}

// A compiled function is locked while the overlay makes the plans of its first calls.
SCENARIO(children_of_a_process_whose_functions_make_plans_of_the_overlay) {
  MUST(Layers::computes(4));
  const auto call = [](int64_t n) {
    const Tensor a = ones({n % 500 + 20, n % 300 + 64}), b = ones({n % 300 + 64, 70 + n % 7});
    auto compiled = compile([&](const Tensor& x) { return matmul(x, b); });
    const NoGrad guard;
    MUST(compiled(a).to_vector<float>()[0] == static_cast<float>(n % 300 + 64));
  };
  std::atomic<bool> stop{false};
  std::thread thread([&] {
    for (int64_t n = 0; !stop; ++n) call(n);
  });
  int failed = 0;
  for (int64_t i = 0; i < 200 && !failed; ++i)
    failed = in_child([&] {
      if (i % 20 == 0) call(1000 + i);
      _exit(0);
    });
  stop = true;
  thread.join();
  return failed;
}

SCENARIO(ends_while_the_overlay_computes) {
  static auto& layers = *new Layers;
  static auto& queued = *new std::vector<Tensor>;
  computes_at_end.conv = layers.conv().to_vector<float>();
  computes_at_end.product = layers.product().to_vector<float>();
  computes_at_end.transposed = layers.transposed().to_vector<float>();
  computes_at_end.layers = &layers;
  for (int i = 0; i < 200; ++i)
    queued.push_back(i % 3 == 0   ? layers.conv()
                     : i % 3 == 1 ? layers.product()
                                  : layers.transposed());
  std::exit(0);
}
