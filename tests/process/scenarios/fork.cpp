#include <atomic>
#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include <tenon/core/base/fork.h>
#include <tenon/core/dispatch/replica.h>

#include "scenarios.h"

using namespace tenon;

SCENARIO(child_of_a_process_that_computed) {
  MUST(computes() && computes("cpu:1"));
  const Tensor queued = matmul(ones({300, 300}), ones({300, 300}));
  const int status = in_child([&] {
    MUST(sum(queued).item<float>() == 300.f * 300 * 300);
    MUST(computes() && computes("cpu:1") && computes("cpu:2"));
    MUST(in_child([] { MUST(computes()); }) == 0);
  });
  MUST(status == 0);
  MUST(in_child([] {}) == 0);  // to exit is all that it does
  return computes() && computes("cpu:2") ? 0 : 1;
}

SCENARIO(children_of_a_process_whose_threads_compute) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&stop, i] {
      for (int64_t n = 1; !stop; ++n) {
        const Device device("cpu", static_cast<uint32_t>(i));
        const Tensor x = ones({n % 50 + 1, 64}, {.device = device});
        MUST(sum(matmul(x, x.t())).item<float>() > 0);
      }
    });
  MUST(computes());
  int failed = 0;
  for (int i = 0; i < 20; ++i)
    failed += in_child([] { MUST(computes() && computes("cpu:1")); }) != 0;
  stop = true;
  for (auto& t : threads) t.join();
  return failed;
}

// Each child is a process that has not used the library. It forks while a thread of its own makes
// what the library keeps for the whole process; the forks of the children are a little later each.
SCENARIO(children_of_processes_whose_threads_use_the_library_first) {
  int failed = 0;
  for (int i = 0; i < 40 && !failed; ++i)
    failed = in_child([&] {
      std::atomic<bool> begins{false};
      std::thread thread([&] {
        begins = true;
        MUST(computes());
      });
      while (!begins) {
      }
      for (const auto until = std::chrono::steady_clock::now() + i * std::chrono::microseconds(20);
           std::chrono::steady_clock::now() < until;) {
      }
      MUST(in_child([] { MUST(computes()); }) == 0);
      thread.join();
    });
  return failed;
}

// A fork that waits for a device which another thread opens finds the stream that came with it.
SCENARIO(children_of_a_process_whose_threads_open_devices) {
  constexpr uint32_t devices = 40;
  MUST(computes());
  std::atomic<uint32_t> opened{1};
  std::thread thread([&] {
    for (uint32_t n = 1; n <= devices; ++n) {
      opened = n;
      for (int i = 0; i < 20; ++i) MUST(computes(Device("cpu", n)));
    }
  });
  int failed = 0;
  do failed = in_child([&] { MUST(computes(Device("cpu", opened)) && computes()); });
  while (!failed && opened < devices);
  thread.join();
  return failed;
}

// What modules, gradients and losses keep for the whole process is guarded, and free in the child.
SCENARIO(children_of_a_process_whose_threads_train) {
  auto step = [] {
    nn::Linear layer(4, 3);
    mse_loss(layer(ones({2, 4})), zeros({2, 3})).backward();
    MUST(layer.weight.grad().defined() && nn::clone(layer).parameters().size() == 2);
  };
  step();
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&] {
      while (!stop) step();
    });
  int failed = 0;
  for (int i = 0; i < 50 && !failed; ++i) failed += in_child(step) != 0;
  stop = true;
  for (auto& t : threads) t.join();
  return failed;
}

// One graph that several threads go back through, and replicas that they read while the parameter
// changes.
SCENARIO(children_of_a_process_whose_threads_share_tensors) {
  const Tensor x = ones({8}).requires_grad_(), y = (x * x).sum();
  Tensor parameter = ones({8});
  allow_replicas(parameter);
  auto go_back = [&] { y.backward({}, {.retain_graph = true}); };
  auto read_replica = [&] {
    DeviceGuard guard("cpu:1");
    parameter.fill_(2);
    MUST((parameter * 1.0).sum().item<float>() > 0);
  };
  go_back();
  read_replica();
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    while (!stop) go_back();
  });
  threads.emplace_back([&] {
    while (!stop) read_replica();
  });
  int failed = 0;
  for (int i = 0; i < 60 && !failed; ++i)
    failed = in_child([&] {
      go_back();
      read_replica();
      _exit(0);
    });
  stop = true;
  for (auto& t : threads) t.join();
  return failed;
}

SCENARIO(locks_end_while_their_process_forks) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&] {
      while (!stop) {
        std::deque<ForkMutex> many;
        for (int n = 0; n < 50; ++n) many.emplace_back(ForkOrder::memory);
        for (auto& mutex : many) std::lock_guard lock(mutex);
      }
    });
  int failed = 0;
  for (int i = 0; i < 50 && !failed; ++i) failed = in_child([] { _exit(0); });
  stop = true;
  for (auto& t : threads) t.join();
  return failed;
}

SCENARIO(many_locks_end) {
  std::deque<ForkSpinLock> many;  // a search among them all for each would take minutes
  for (int n = 0; n < 1'000'000; ++n) many.emplace_back(ForkOrder::memory);
  return 0;
}

// Whatever ended in between.
SCENARIO(members_stop_in_the_order_in_which_they_joined) {
  static std::vector<int> stopped;
  struct Noting final : ForkMember {
    Noting(ForkOrder order, int number) : ForkMember(order), number(number) { join(); }
    ~Noting() { leave(); }
    void before_fork() override { stopped.push_back(number); }
    void after_fork(bool) override {}
    const int number;
  };
  std::deque<Noting> late, early;
  for (int n = 0; n < 8; ++n) {
    late.emplace_back(ForkOrder::tables, 10 + n);
    early.emplace_back(ForkOrder::backends, n);
  }
  late.pop_front();
  early.pop_front();
  early.emplace_back(ForkOrder::backends, 8);
  stopped.reserve(100);
  MUST(in_child([] { _exit(0); }) == 0);
  return stopped == std::vector{1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15, 16, 17} ? 0 : 1;
}

// Forks while a thread repeats `step`.
static int forks_beside(const std::function<void()>& step) {
  std::atomic<int> steps{0};
  std::atomic<bool> stop{false};
  std::thread thread([&] {
    for (; !stop; ++steps) step();
  });
  int failed = 0;
  for (int i = 0; i < 200 && !failed; ++i) {
    failed = in_child([&] { _exit(0); });
    if (i == 100)
      for (const int now = steps; steps < now + 2;) std::this_thread::yield();
  }
  stop = true;
  thread.join();
  return failed + in_child(step);
}

// What is computed again takes the locks of replicas and of compiled functions.
SCENARIO(children_of_a_process_that_computes_again) {
  struct Net : nn::Module<Net> {
    nn::Linear a{16, 16}, b{16, 16};
    Tensor forward(const Tensor& x) {
      return checkpoint([this](const Tensor& t) { return b(relu(a(t))); }, x);
    }
  };
  nn::DataParallel model(Net(), {Device("cpu:0"), Device("cpu:1")});
  const Tensor x = randn({8, 16});
  if (const int failed = forks_beside([&] { model(x).sum().backward(); })) return failed;
  nn::Linear layer(16, 16);
  auto compiled = compile([&](const Tensor& t) { return relu(layer(t)); });
  const auto again = [&](const Tensor& t) { return compiled(t); };
  return forks_beside([&] { checkpoint(again, x).sum().backward(); });
}

SCENARIO(children_of_a_process_that_saves_programs) {
  const auto folder = std::filesystem::temp_directory_path() /
                      ("tenon-fork-saves-" + std::to_string(static_cast<long>(getpid())));
  std::filesystem::create_directory(folder);
  const NoGrad guard;
  nn::Linear layer(16, 16);
  auto compiled = compile([&](const Tensor& x) { return relu(layer(x)); });
  for (int i = 0; i < 4; ++i) compiled(ones({4, 16}));
  compiled.save(folder / "made", {.inputs = {"x"}, .outputs = {"y"}});
  const Program program = Program::load(folder / "made");
  const int failed = forks_beside([&] { program.save(folder / "again"); });
  std::filesystem::remove_all(folder);
  return failed;
}

SCENARIO(child_in_a_loop_over_a_loader) {
  const Tensor x = ones({64, 3}), y = zeros({64}, {.dtype = i64});
  data::DataLoader loader(data::TensorDataset(x, y), {.batch_size = 4, .workers = 2});
  int64_t seen = 0;
  for (auto it = loader.begin(); it != loader.end(); ++it) {
    if (++seen != 3) continue;
    MUST(in_child([&] {
           std::string error;
           try {
             for (; it != loader.end(); ++it) {
             }
           } catch (const DataError& e) {
             error = e.what();
           }
           MUST(error.find("fork") != std::string::npos);
           int64_t again = 0;
           for (auto& batch : loader) again += batch.data.size(0);
           MUST(again == 64);
         }) == 0);
  }
  return seen == 16 ? 0 : 1;
}

// A device with a queue of its own does not outlive a fork, but its tensors may be dropped, and the
// cpu works.
SCENARIO(child_of_a_process_with_a_device_of_its_own) {
  Tensor x = ones({4, 4}, {.device = "sim:0"});
  Tensor y = matmul(x, x);
  MUST(sum(y).item<float>() == 64);
  MUST(in_child([&] {
         for (auto& error :
              {device_error([&] { x + y; }), device_error([&] { y.to_vector<float>(); }),
               device_error([&] { y.to("cpu:0"); }),
               device_error([&] { zeros({1 << 20}, {.device = "sim:0"}); }),
               device_error([&] { zeros({3}, {.device = "sim:1"}); }), device_error([&] {
                 x.copy_(ones({4, 4}));
               })})
           if (error.find("forked") == std::string::npos)
             std::printf("got \"%s\"\n", error.c_str()), std::fflush(stdout), _exit(8);
         y = Tensor();
         MUST(computes());
       }) == 0);
  return sum(y + x).item<float>() == 80 ? 0 : 1;
}
