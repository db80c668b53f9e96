// One allocation that fails, at each point of a training step, in whatever thread it comes: the
// caller gets an error or nothing goes wrong, and afterwards the process works, with right values
// and all memory back.
#include <memory>
#include <span>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "fuzz.h"
#include "support/drain.h"
#include "support/expect.h"
#include "support/failing_allocations.h"

using namespace tenon;
using namespace tenon::test;

namespace {

// ---- what is trained ----

struct Net : nn::Module<Net> {
  nn::Conv2d conv{1, 3, 3, {.padding = 1}};
  nn::BatchNorm2d norm{3};
  nn::Linear hidden{48, 12}, out{12, 4};
  Tensor forward(const Tensor& x) {
    Tensor h = relu(norm(conv(x.reshape({x.size(0), 1, 4, 4}))));
    return out(relu(hidden(h.flatten(1))));
  }
};

// Always the same.
class Examples : public data::Dataset {
 public:
  int64_t size() const override { return 3000; }
  data::Batch get_batch(std::span<const int64_t> indices) const override {
    std::vector<float> pixels;
    std::vector<int64_t> classes;
    for (int64_t index : indices) {
      for (int64_t i = 0; i < 16; ++i)
        pixels.push_back(static_cast<float>((index * 7 + i * 3) % 11) / 11);
      classes.push_back(index % 4);
    }
    const auto n = static_cast<int64_t>(indices.size());
    return {tensor(pixels, {n, 16}), tensor(classes)};
  }
};

using Values = std::vector<std::vector<float>>;

// A model and its optimizer, new and always the same, and one step of them.
class Subject {
 public:
  Subject(bool adam, bool parallel, const Device& device) : parallel_(parallel), device_(device) {
    manual_seed(5);
    net_ = Net();
    net_.to(device);
    if (adam)
      optimizer_ = std::make_unique<optim::Adam>(net_.parameters(), optim::AdamOptions{.lr = 0.01});
    else
      optimizer_ = std::make_unique<optim::SGD>(net_.parameters(),
                                                optim::SGDOptions{.lr = 0.05, .momentum = 0.9});
  }

  // `batch` examples, fetched by worker threads.
  void step(int64_t batch, bool bad_label = false) {
    data::DataLoader loader(Examples{}, {.batch_size = batch, .workers = 1});
    auto it = loader.begin();
    auto& [input, target] = *it;
    Tensor x = input.to(device_), y = (bad_label ? target + 99 : target).to(device_);
    optimizer_->zero_grad();
    Tensor loss;
    if (parallel_) {
      nn::DataParallel wrapped(net_, {Device("cpu:0"), Device("cpu:1")});
      loss = cross_entropy(wrapped(x), y);
    } else {
      loss = cross_entropy(net_(x), y);
    }
    loss.backward();
    optimizer_->step();
    loss_ = loss.item();
  }

  Values values() {
    Values all{{static_cast<float>(loss_)}};
    for (auto& p : net_.parameters()) all.push_back(p.to_vector<float>());
    return all;
  }

 private:
  const bool parallel_;
  const Device device_;
  Net net_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  double loss_ = 0;
};

struct Scenario {
  const char* name;
  bool adam, parallel;
  const char* device = "cpu:0";
  bool new_shapes = false;  // a batch size that was not seen before: plans are made, too
  bool bad_label = false;   // a kernel fails as well, and that has to be filed
};

constexpr const char* kDevices[] = {"cpu:0", "cpu:1", "cpu:3", "sim:0"};

std::vector<uint64_t> memory_in_use() {
  std::vector<uint64_t> all;
  for (auto* device : kDevices) all.push_back(memory_stats(device).allocated);
  return all;
}

Values one_step(const Scenario& s, int64_t batch) {
  Subject subject(s.adam, s.parallel, s.device);
  subject.step(batch);
  return subject.values();
}

// The step, with its n-th allocation failing. False where it has not so many.
bool fail_at(const Scenario& s, int64_t n, int64_t batch, int64_t& errors) {
  failed = false;
  {
    Subject subject(s.adam, s.parallel, s.device);
    until_failure = n;
    try {
      subject.step(batch, s.bad_label);
    } catch (const std::bad_alloc&) {
      ++errors;
    } catch (const Error&) {  // by a worker: told by the loader, or by whoever waits
      ++errors;
    }
    until_failure = 0;
    drain();
  }
  return failed;
}

void walk(const Scenario& s) {
  const Deadline deadline;
  const int64_t usual = 8;
  const Values expected = one_step(s, usual);
  one_step(s, usual);
  drain();
  const auto before = memory_in_use();
  counted = 0;
  one_step(s, s.new_shapes ? 9 : usual);
  const int64_t allocations = counted;

  int64_t errors = 0, batch = usual, last = 0;
  const int64_t points = each_point(allocations, 150, deadline, [&](int64_t n) {
    if (s.new_shapes) batch = 10 + n;
    if (!fail_at(s, n, batch, errors)) return false;
    last = n;
    const Values after = one_step(s, usual);
    if (after != expected)
      BOOST_ERROR(s.name << ": other values in the step after allocation " << n << " failed");
    drain();
    if (memory_in_use() != before)
      BOOST_ERROR(s.name << ": memory is lost where allocation " << n << " fails");
    return true;
  });
  BOOST_TEST_MESSAGE(s.name << ": " << points << " points of about " << allocations << ", "
                            << errors << " errors, the last at " << last);
  if (deadline.over()) return;
  BOOST_TEST(points > 50);
  BOOST_TEST(errors > points / 3);  // some are made good on the spot
}

}  // namespace
BOOST_TEST_GLOBAL_FIXTURE(SimFolder);

BOOST_AUTO_TEST_CASE(a_step_with_momentum_survives_each_failed_allocation) {
  walk({"SGD", false, false});
}
BOOST_AUTO_TEST_CASE(a_step_of_adam_survives_each_failed_allocation) {
  walk({"Adam", true, false});
}
BOOST_AUTO_TEST_CASE(a_step_on_a_device_with_a_queue_survives_each_failed_allocation) {
  walk({"sim", true, false, "sim:0"});
}
BOOST_AUTO_TEST_CASE(a_step_on_two_devices_survives_each_failed_allocation) {
  walk({"DataParallel", false, true});
}
BOOST_AUTO_TEST_CASE(making_plans_survives_each_failed_allocation) {
  walk({"new shapes", false, false, "cpu:0", true});
}

BOOST_AUTO_TEST_CASE(a_step_that_fails_anyway_survives_each_failed_allocation) {
  walk({"bad label", false, false, "cpu:0", false, true});
}
