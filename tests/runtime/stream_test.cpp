// Work is queued, looks sequential, and its errors reach whoever waits.
#include <atomic>
#include <cfenv>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/core/base/module_path.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/random.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/tensor.h>

#include "support/expect.h"
#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(stream_test)

using namespace tenon;
using test::error_of;
using test::has;

namespace {

const int64_t kSlowSize = test::kSanitized ? 128 : 640;

// Some tens of milliseconds of work on a device.
Tensor slow(Device device) {
  Tensor a = full({kSlowSize, kSlowSize}, 1e-3, {.device = device});
  for (int i = 0; i < 8; ++i) a = matmul(a, a) * 1e-3;
  return a;
}

Tensor very_slow(Device device) {
  Tensor sum = slow(device);
  for (int i = 0; i < 5; ++i) sum = sum + slow(device);
  return sum;
}

// What is seen of two things at once depends on when the system lets this thread look: one sight is
// proof, none in ten is the opposite.
bool within_some_tries(auto&& overlapped) {
  for (int i = 0; i < 10; ++i)
    if (overlapped()) return true;
  return false;
}

}  // namespace

BOOST_AUTO_TEST_CASE(ten_thousand_calls_return_before_the_work_ends) {
  Tensor x;
  BOOST_TEST(within_some_tries([&] {
    Tensor before = slow("cpu:0");
    x = zeros({100}) + before.select(0, 0).narrow(0, 0, 100) * 0.0;
    bool ahead = false;
    for (int i = 0; i < 10000; ++i) {
      x = x + 1.0;
      ahead |= !x.is_ready();
    }
    return ahead;
  }));
  x.wait();
  BOOST_TEST(x.is_ready());
  for (float v : x.to_vector<float>()) BOOST_TEST(v == 10000.0f);
}

BOOST_AUTO_TEST_CASE(more_calls_than_the_queue_holds) {
  Tensor x = slow("cpu:0").narrow(0, 0, 1).narrow(1, 0, 4) * 0.0;
  for (int i = 0; i < 30000; ++i) x = x + 1.0;
  for (float v : x.to_vector<float>()) BOOST_TEST(v == 30000.0f);
}

BOOST_AUTO_TEST_CASE(devices_work_at_the_same_time) {
  // cpu:1 answers while cpu:0 is busy.
  BOOST_TEST(within_some_tries([] {
    Tensor long_work = very_slow("cpu:0");
    Tensor short_work = full({4}, 2, {.device = "cpu:1"}) * 3.0;
    BOOST_TEST(short_work.to_vector<float>()[3] == 6.0f);
    const bool overlapped = !long_work.is_ready();
    long_work.wait();
    return overlapped;
  }));
}

BOOST_AUTO_TEST_CASE(a_copy_between_devices_does_not_wait_for_later_work_of_its_source) {
  Tensor source = arange(0, 1000);
  source.wait();
  BOOST_TEST(within_some_tries([&] {
    Tensor later = very_slow("cpu:0");
    Tensor copy = source.to("cpu:1");
    BOOST_TEST(copy.to_vector<float>()[999] == 999.0f);
    const bool overlapped = !later.is_ready();
    later.wait();
    return overlapped;
  }));
}

BOOST_AUTO_TEST_CASE(memory_that_another_device_still_reads_is_not_reused) {
  for (int round = 0; round < 20; ++round) {
    Tensor busy = slow("cpu:1");
    Tensor copy;
    {
      Tensor source = full({5000}, round);
      copy = source.to("cpu:1");  // queued behind `busy`
    }
    for (int i = 0; i < 50; ++i) full({5000}, -1);  // would land in the source's block
    synchronize("cpu:0");
    for (float v : copy.to_vector<float>()) BOOST_REQUIRE(v == static_cast<float>(round));
    busy.wait();
  }
}

BOOST_AUTO_TEST_CASE(a_change_in_place_waits_for_readers_on_other_devices) {
  Tensor busy = slow("cpu:1");
  Tensor source = full({5000}, 1);
  Tensor copy = source.to("cpu:1");
  source.fill_(2);
  for (float v : copy.to_vector<float>()) BOOST_REQUIRE(v == 1.0f);
  for (float v : source.to_vector<float>()) BOOST_REQUIRE(v == 2.0f);
  busy.wait();
}

BOOST_AUTO_TEST_CASE(an_error_in_queued_work_names_operator_shapes_and_module) {
  synchronize();
  Tensor weight = ones({10, 4}), indices = tensor(std::vector<int64_t>{1, 2, 77}), rows;
  {
    ModulePath outer("Net"), inner("embedding");
    rows = embedding(indices, weight);
  }
  auto text = error_of([&] { rows.wait(); });
  BOOST_TEST(has(text, "77"), text);
  BOOST_TEST(has(text, "embedding: (10, 4), (3,) on cpu:0"), text);
  BOOST_TEST(has(text, "Net.embedding"), text);
  // The stream works on, and what never was computed can never be read.
  BOOST_TEST((ones({3}) + 1.0).to_vector<float>()[0] == 2.0f);
  BOOST_CHECK_THROW(rows.to_vector<float>(), IndexError);
  Tensor derived = rows * 2.0 + 1.0;
  BOOST_CHECK_THROW(derived.to_vector<float>(), IndexError);
  BOOST_CHECK_THROW(derived.to("cpu:1").to_vector<float>(), IndexError);
  BOOST_CHECK_NO_THROW(synchronize());
}

BOOST_AUTO_TEST_CASE(an_error_reaches_the_next_synchronize_once) {
  synchronize();
  embedding(tensor(std::vector<int64_t>{-1}), ones({2, 2}));
  BOOST_CHECK_THROW(synchronize(), IndexError);
  BOOST_CHECK_NO_THROW(synchronize());
}

BOOST_AUTO_TEST_CASE(poison_ends_when_the_memory_is_written_again) {
  synchronize();
  Tensor rows = embedding(tensor(std::vector<int64_t>{5}), ones({2, 2}));
  BOOST_CHECK_THROW(rows.wait(), IndexError);
  rows.fill_(3);
  BOOST_TEST(rows.to_vector<float>()[0] == 3.0f);
  for (int i = 0; i < 100; ++i)
    BOOST_TEST(full({1, 2}, i).to_vector<float>()[1] == static_cast<float>(i));
}

// The queue is full the whole time, so each call waits for room: the two take turns, unless the
// system lets one of them sleep.
BOOST_AUTO_TEST_CASE(a_thread_that_never_waits_keeps_no_other_from_its_turn) {
  const Tensor x = ones({30000});
  BOOST_TEST(within_some_tries([&] {
    constexpr int turns = 50;
    constexpr int64_t most = 100000;
    std::atomic<int64_t> calls{0};
    std::atomic<bool> stop{false};
    std::thread greedy([&] {
      for (; !stop && calls < most; ++calls) x + 1.0;
    });
    while (calls < 15000) std::this_thread::yield();  // by then the queue is full
    int fair = 0;  // turns for which the other made a call or two meanwhile
    for (int turn = 0; turn < turns; ++turn) {
      const int64_t before = calls;
      x * 2.0;
      const int64_t after = calls;
      fair += after - before <= 3 && after < most;
    }
    stop = true;
    greedy.join();
    return fair >= turns / 2;  // whoever loses the core has lost a turn
  }));
}

// The thread that waits may do the work itself.
BOOST_AUTO_TEST_CASE(how_the_waiting_thread_rounds_changes_no_result) {
  const int64_t n = 96;
  const Tensor a = rand({n, n}), b = rand({n, n});
  const auto before = matmul(a, b).to_vector<float>();
  std::fesetround(FE_UPWARD);
  bool same = true;
  for (int i = 0; i < (test::kSanitized ? 10 : 100) && same; ++i)
    same = matmul(a, b).to_vector<float>() == before;
  const int rounding = std::fegetround();
  std::fesetround(FE_TONEAREST);
  BOOST_TEST(same);
  BOOST_TEST(rounding == FE_UPWARD);
}

// Operators this small run on the thread that calls them.
BOOST_AUTO_TEST_CASE(how_the_calling_thread_rounds_changes_no_result) {
  const Tensor a = full({4}, 1), b = full({4}, 1e-9);
  std::fesetround(FE_UPWARD);
  const auto sum = (a + b).to_vector<float>();
  const int rounding = std::fegetround();
  std::fesetround(FE_TONEAREST);
  BOOST_TEST(sum == std::vector<float>(4, 1));
  BOOST_TEST(rounding == FE_UPWARD);
}

BOOST_AUTO_TEST_CASE(many_threads_wait_for_parts_of_one_queue) {
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&wrong, t] {
      const Tensor a = full({48, 48}, t + 1);
      for (int i = 0; i < (test::kSanitized ? 30 : 300); ++i) {
        const Tensor y = matmul(a, a), z = y + a;
        if (i % 3) y.wait();
        wrong += z.to_vector<float>()[5] != static_cast<float>(48 * (t + 1) * (t + 1) + t + 1);
      }
    });
  for (auto& t : threads) t.join();
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_CASE(many_threads_share_a_device) {
  std::vector<std::thread> threads;
  std::vector<double> sums(4);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&sums, t] {
      Tensor x = zeros({64});
      for (int i = 0; i < 500; ++i) x = x + static_cast<double>(t);
      sums[t] = x.sum().item();
    });
  for (auto& t : threads) t.join();
  for (int t = 0; t < 4; ++t) BOOST_TEST(sums[t] == 64.0 * 500 * t);
}

BOOST_AUTO_TEST_SUITE_END()
