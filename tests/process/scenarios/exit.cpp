#include <atomic>
#include <thread>

#include <unistd.h>

#include "scenarios.h"

using namespace tenon;

namespace {

// Runs after main: what it is given while main runs, it uses as a static object would.
struct AtEnd {
  std::function<void()> body;
  ~AtEnd() {
    if (body) body();
    std::fflush(stdout);
  }
};
Tensor kept;   // ends after it
AtEnd at_end;  // made before any device is opened, so it ends after they are closed

}  // namespace

SCENARIO(static_object_computes) {
  MUST(computes());
  kept = ones({3}).requires_grad_();
  at_end.body = [] {
    MUST(computes());
    MUST(sum(kept * 2).item<float>() == 6);
    MUST(sum(softmax(ones({2, 5}), 1)).item<float>() > 1.9f);  // a plan that is new
    std::printf("computed");
  };
  return 0;
}

SCENARIO(static_object_uses_a_closed_device) {
  kept = ones({3}, {.device = "sim:0"});
  MUST(sum(kept).item<float>() == 3);
  at_end.body = [] {
    for (auto& error : {device_error([] { kept + kept; }), device_error([] { kept * 3; }),
                        device_error([] { kept.to("cpu:0"); }),
                        device_error([] { zeros({1 << 20}, {.device = "sim:0"}); })})
      std::printf("%s\n", error.find("closed: the program is ending") != std::string::npos
                              ? "refused"
                              : error.c_str());
    kept = Tensor();
    MUST(computes());
  };
  return 0;
}

SCENARIO(detached_threads_compute_on) {
  MUST(computes());
  for (int i = 0; i < 2; ++i)
    std::thread([i] {
      for (int64_t n = 1;; ++n) {
        const Tensor x =
            ones({n % 4000 + 1, 8}, {.device = Device("cpu", static_cast<uint32_t>(i))});
        sum(matmul(x, x.t())).item<float>();
      }
    }).detach();
  at_end.body = [] {
    usleep(50'000);
  };  // the threads go on while the process ends, and make new plans
  return 0;
}

// Devices opened one after the other, a product that opens a library, and tensors that live on.
SCENARIO(vendor_devices_at_exit) {
  kept = ones({4, 4}, {.device = "vendor:0"});
  static Tensor second = ones({4, 4}, {.device = "vendor:1"});
  static Tensor product = matmul(kept, kept);
  return sum(product).item<float>() == 64 && sum(second + second).item<float>() == 32 ? 0 : 1;
}

namespace {

// Ends the program from the thread that makes a batch, or is slow.
class Ending : public data::Dataset {
 public:
  explicit Ending(bool ends) : ends_(ends) {}
  int64_t size() const override { return 1000; }
  data::Batch get_batch(std::span<const int64_t> indices) const override {
    static std::atomic<bool> is_ending{false};
    if (ends_ && indices[0] >= 40 && !is_ending.exchange(true))
      std::exit(0);  // two threads may not
    usleep(1000);
    const auto n = static_cast<int64_t>(indices.size());
    return {ones({n, 4}), zeros({n}, {.dtype = i64})};
  }

 private:
  bool ends_;
};

std::atomic<int> steps{0};

int train_for_ever(bool ends, int workers) {
  data::DataLoader loader(Ending(ends), {.batch_size = 8, .workers = workers});
  nn::Linear layer(4, 3);
  optim::SGD optimizer(layer.parameters(), {.lr = 0.1});
  for (;;)
    for (auto& [x, y] : loader) {
      optimizer.zero_grad();
      cross_entropy(layer(x), y).backward();
      optimizer.step();
      ++steps;
    }
}

}  // namespace

SCENARIO(a_worker_ends_the_program) { return train_for_ever(true, 2); }
SCENARIO(a_data_set_ends_the_program) { return train_for_ever(true, 0); }

SCENARIO(another_thread_ends_the_program) {
  std::thread([] {
    while (steps < 10) usleep(1000);
    std::exit(0);
  }).detach();
  return train_for_ever(false, 3);
}

// Before HDF5 has closed itself, and after it.
SCENARIO(saved_at_exit) {
  static const auto& path =
      *new std::filesystem::path(std::filesystem::temp_directory_path() /
                                 ("tenon-at-exit-" + std::to_string(getpid()) + ".h5"));
  at_end.body = [] {
    save(path, nn::StateDict{{"w", ones({3})}});
    MUST(sum(load(path).at("w")).item<float>() == 3);
    unlink(path.c_str());
    std::printf("saved ");
  };
  MUST(std::atexit([] { at_end.body(); }) == 0);
  save(path, nn::StateDict{{"w", ones({2})}});
  return std::atexit([] { at_end.body(); });
}
