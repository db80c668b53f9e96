// What a plugin does to another one that lives in the same process: the plugin of the reference
// device.
#include <cfenv>
#include <thread>

#include <tenon/conformance/joint/bench.h>
#include <tenon/conformance/joint/checks.h>
#include <tenon/core/error.h>
#include <tenon/core/ops/pointwise.h>

namespace tenon::conformance::joint {

namespace {

constexpr int64_t kLong = 1 << 18;  // enough for all threads of the host

// Products that depend on the rounding, and on numbers so small that some arithmetic takes them
// for 0.
std::vector<float> delicate(Bench& bench, const Tensor& x) {
  DeviceGuard guard(bench.subject.reference);
  return (x * 0.3f).to_vector<float>();
}
Tensor small_numbers(Bench& bench) {
  std::vector<float> values(kLong);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i % 1000 + 1) * (i % 2 ? 1.1754944e-40f : 1.1f);
  return tensor(values, {kLong}, {.device = bench.subject.reference});
}

void require_unchanged(const std::vector<float>& found, const std::vector<float>& before,
                       const char* what) {
  for (size_t i = 0; i < found.size(); ++i)
    require(found[i] == before[i],
            "{}: element {} of a product on the other device is {:a} and was {:a} "
            "before: look for a plugin that changes the rounding, or flushes small "
            "numbers to 0, on threads that are not its own (fesetround, -ffast-math)",
            what, i, found[i], before[i]);
}

void arithmetic(Bench& bench) {
  const Operator op = known_operator(bench);
  const Tensor x = small_numbers(bench);
  const auto before = delicate(bench, x);
  std::fenv_t environment;
  fegetenv(&environment);
  const int rounding = fegetround();
  {
    const auto count = static_cast<size_t>(op.count);
    Request request(op, op.count);
    Plan plan(bench, request.get());
    Stream stream(bench);
    Memory in(bench, count * sizeof(float)), out(bench, count * sizeof(float));
    stream.upload(in, std::vector<float>(count, -2));
    plan.run(stream, in, out);
    stream.wait();
  }
  volatile float tiny = 1.1754944e-40f, half = 0.5f;
  const bool same = fegetround() == rounding && tiny * half != 0;
  const Tensor y = full({kLong}, -2, {.device = bench.subject.reference});
  for (int i = 0; i < 5; ++i) {
    op.call(y.to(bench.subject.device)).wait();
    require_unchanged(delicate(bench, x), before, "after runs of the plugin");
  }
  fesetenv(&environment);
  require(same,
          "after a run of {}, the thread that called it rounds otherwise, or "
          "flushes small numbers to 0",
          op.name);
}

// A thread for each of two plugins, and copies from one to the other.
void at_the_same_time(Bench& bench) {
  const Operator op = known_operator(bench);
  const Tensor x = small_numbers(bench);
  const auto before = delicate(bench, x);
  std::string failure;
  std::thread other([&] {
    try {
      for (int turn = 0; turn < 10; ++turn)
        require_unchanged(delicate(bench, x), before, "while the plugin runs");
    } catch (const std::exception& e) {
      failure = e.what();
    }
  });
  try {
    for (int turn = 0; turn < 10; ++turn) {
      const Tensor here =
          full({op.at_least(kLong - turn)}, -2, {.device = bench.subject.reference});
      const Tensor there = op.call(here.to(bench.subject.device));
      const auto found = (there.to(bench.subject.reference) + here).to_vector<float>();
      for (size_t i = 0; i < found.size(); ++i)
        require(found[i] == op.of_minus_two - 2,
                "copied to the plugin, through {} and back, element {} is {}, expected "
                "{}, while the other plugin runs",
                op.name, i, found[i] + 2, op.of_minus_two);
    }
  } catch (...) {
    other.join();
    throw;
  }
  other.join();
  require(failure.empty(), failure);
}

}  // namespace

void add_neighbour_checks(const Add& add) {
  add("two plugins", "the arithmetic of the other, and of the caller, stays as it is", arithmetic);
  add("two plugins", "both compute at the same time, and copy to each other", at_the_same_time);
}

}  // namespace tenon::conformance::joint
