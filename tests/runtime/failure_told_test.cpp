// Who is told of a failure: whoever reads a value that it left without one, else who waits for the
// device, else who reads what the program prints at its end.
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "process/child.h"
#include "runtime/never_made.h"
#include "sim/faults.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(failure_told_test, *boost::unit_test::fixture<tenon::test::SimFolder>())

using namespace tenon;
using namespace tenon::test;

namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

BOOST_AUTO_TEST_CASE(who_reads_a_value_hears_of_that_value_alone) {
  synchronize();
  Tensor bad = never_made({2}), other = never_made({2}, 77), good = ones({2}) * 3.0;
  BOOST_TEST(good.sum().item() == 6.0);
  require_error<Error>([&] { other.wait(); }, "77");
  require_error<Error>([&] { bad.wait(); }, "index 9");
  require_error<Error>([&] { (other + 1.0).sum().item(); }, "77");
  BOOST_CHECK_NO_THROW(synchronize());
  never_made({2});
  BOOST_TEST(good.sum().item() == 6.0);
  BOOST_CHECK_THROW(synchronize("cpu:0"), IndexError);
  BOOST_CHECK_NO_THROW(synchronize("cpu:0"));
}

BOOST_AUTO_TEST_CASE(an_error_of_one_thread_does_not_reach_another) {
  synchronize();
  constexpr int rounds = 200;
  int own = 0, others = 0;
  {
    std::jthread careless([&] {
      for (int i = 0; i < rounds; ++i)
        if (has(error_of([] {
                  cross_entropy(randn({4, 3}), tensor(std::vector<int64_t>{0, 1, 2, 9})).item();
                }),
                "9"))
          ++own;
    });
    std::jthread careful([&] {
      for (int i = 0; i < rounds; ++i)
        if (!error_of([] { (ones({64}) * 2.0).sum().item(); }).empty()) ++others;
    });
  }
  BOOST_TEST(own == rounds);
  BOOST_TEST(others == 0);
  BOOST_CHECK_NO_THROW(synchronize());
}

BOOST_AUTO_TEST_CASE(a_copy_of_what_failed_late_is_never_read) {
  synchronize();
  Tensor host = ones({5});
  empty({3}, {.device = "sim:0"}).fill_(sim::kFailsLate);
  Tensor copied = ones({5}, {.device = "sim:0"}).to("cpu"), used = copied + host;
  BOOST_TEST((host + 1.0).sum().item() == 10.0);  // of the host alone
  for (int i = 0; i < 2; ++i) require_error<Error>([&] { used.sum().item(); }, "an accident");
  BOOST_CHECK_NO_THROW(synchronize());
}

// What fails at once, on a stream of a device or on the worker of one, has the name of its memory;
// neither that nor a copy anywhere is ever read, whoever was told before.
BOOST_AUTO_TEST_CASE(what_failed_is_never_read_however_often_it_is_asked_for) {
  synchronize();
  const Tensor at_once = full({3}, sim::kFailsAtOnce, {.device = "sim:0"}),
               on_worker = never_made({3});
  const std::pair<Tensor, const char*> all[] = {{at_once, "an accident at once"},
                                                {on_worker, "index 9"}};
  for (auto& [bad, text] : all)
    for (const char* device : {"cpu:0", "cpu:1", "sim:0", "sim:1"}) {
      const Tensor copied = bad.to(device), used = copied * 2.0;
      for (int i = 0; i < 3; ++i)
        for (const Tensor* x : std::initializer_list<const Tensor*>{&bad, &copied, &used}) {
          require_error<Error>([&] { x->wait(); }, text);
          require_error<Error>([&] { x->to_vector<float>(); }, text);
          require_error<Error>([&] { x->sum().item(); }, text);
          require_error<Error>([&] { x->to("cpu").wait(); }, text);
        }
    }
  BOOST_CHECK_NO_THROW(synchronize());
}

BOOST_AUTO_TEST_CASE(what_failed_late_is_heard_of_on_another_device_of_the_plugin) {
  synchronize();
  for (bool known : {false, true}) {
    Tensor source = ones({5}, {.device = "sim:0"}), bad = empty({3}, {.device = "sim:0"});
    bad.fill_(sim::kFailsLate);
    source = source * 2.0;
    while (known && !source.is_ready()) {  // until the device has reported it
    }
    Tensor sound = ones({5}, {.device = "sim:1"}), copied = source.to("sim:1"), used = copied + 1.0;
    require_error<Error>([&] { used.sum().item(); }, "an accident");
    BOOST_TEST(sound.sum().item() == 5.0);
    BOOST_CHECK_NO_THROW(synchronize());
  }
}

// The device in the middle is done before anybody asked the first one how its work ended.
BOOST_AUTO_TEST_CASE(what_failed_late_is_heard_of_two_devices_further) {
  synchronize();
  for (const char* last : {"sim:2", "cpu:0"})
    for (int i = 0; i < 20; ++i) {
      Tensor x = ones({5}, {.device = "sim:0"});
      empty({3}, {.device = "sim:0"}).fill_(sim::kFailsLate);
      x = (x * 2.0).to("sim:1") + 1.0;
      while (i % 2 && !x.is_ready()) {
      }
      x = x.to(last) * 2.0;
      while (i % 4 > 1 && !x.is_ready()) {
      }
      require_error<Error>([&] { x.sum().item(); }, "an accident");
      BOOST_CHECK_NO_THROW(synchronize());
    }
}

// What one thread was told is not known to another, whatever that does with the value.
BOOST_AUTO_TEST_CASE(what_failed_late_is_heard_of_by_each_thread_that_uses_a_value) {
  synchronize();
  const std::function<void(const Tensor&)> uses[] = {
      [](const Tensor& x) { x.to_vector<float>(); }, [](const Tensor& x) { x.wait(); },
      [](const Tensor& x) { (x * 2.0).sum().item(); }, [](const Tensor& x) { x.to("cpu").wait(); },
      [](const Tensor& x) { x.to("sim:1").wait(); }};
  for (auto& use : uses) {
    Tensor bad = empty({3}, {.device = "sim:0"});
    bad.fill_(sim::kFailsLate);
    const Tensor other = ones({3}, {.device = "sim:0"}) * 2.0;
    std::thread([&] {
      require_error<Error>([&] { other.wait(); }, "an accident");
      BOOST_CHECK_NO_THROW(other.wait());
    }).join();
    require_error<Error>([&] { use(bad); }, "an accident");
    BOOST_CHECK_NO_THROW(use(bad));
    BOOST_CHECK_NO_THROW(synchronize());
    // Threads that use other values are not told again.
    std::thread([] {
      BOOST_TEST((ones({3}, {.device = "sim:0"}) * 2.0).sum().item() == 6.0);
    }).join();
  }
}

// Neither the memory that is written again nor what writes it has to do with what the reader's
// device did.
BOOST_AUTO_TEST_CASE(what_failed_late_is_not_told_to_who_waits_for_a_reader) {
  synchronize();
  for (bool known : {false, true}) {
    Tensor a = ones({5}, {.device = "sim:0"});
    a.wait();
    empty({3}, {.device = "sim:1"}).fill_(sim::kFailsLate);
    Tensor copied = a.to("sim:1");
    while (known && !copied.is_ready()) {
    }
    a.fill_(2);
    BOOST_TEST(a.sum().item() == 10.0);
    require_error<Error>([&] { copied.sum().item(); }, "an accident");
    BOOST_CHECK_NO_THROW(synchronize());
  }
}

BOOST_AUTO_TEST_CASE(what_failed_late_leaves_room_for_others_however_often_it_is_heard_of) {
  synchronize();
  Tensor source = ones({5}, {.device = "sim:0"});
  empty({3}, {.device = "sim:0"}).fill_(sim::kFailsLate);
  source = source * 2.0;
  while (!source.is_ready()) {
  }
  for (int i = 0; i < 150; ++i) source.to("sim:1");
  empty({3}, {.device = "sim:1"}).fill_(sim::kFailsAtOnce);
  require_error<Error>([] { synchronize("sim:1"); }, "an accident");
  require_error<Error>([] { synchronize("sim:1"); }, "an accident at once");
  BOOST_CHECK_NO_THROW(synchronize());
}

// ---- the end of the program ----

BOOST_AUTO_TEST_CASE(leaving_errors_untold,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  never_made({2}, 41);
  never_made({2}, 42);
  empty({3}, {.device = "sim:0"}).fill_(sim::kFailsLate);
}

BOOST_AUTO_TEST_CASE(leaving_when_all_was_told,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  Tensor bad = never_made({2}, 43);
  BOOST_CHECK_THROW(bad.wait(), IndexError);
  never_made({2}, 44);
  BOOST_CHECK_THROW(synchronize(), IndexError);
}

BOOST_AUTO_TEST_CASE(leaving_very_many_errors_untold,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  for (int i = 0; i < 5000; ++i) never_made({2}, 45);
}

BOOST_AUTO_TEST_CASE(throwing_where_the_call_stands,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  Tensor weight = ones({4, 2}), index = tensor(std::vector<int64_t>{46});
  BOOST_CHECK_THROW(embedding(index, weight), IndexError);
  BOOST_CHECK_NO_THROW(embedding(tensor(std::vector<int64_t>{1}), weight));
  BOOST_CHECK_NO_THROW(synchronize());
  BOOST_CHECK_THROW(empty({3}, {.device = "sim:0"}).fill_(sim::kFailsLate), Error);
}

// All calls wait behind the gate, so that the failure of one is found by whichever waits.
BOOST_AUTO_TEST_CASE(calls_of_several_threads,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  auto* gate = plugins::registry().load("sim").extension<sim::Gate>("sim.gate", 1);
  const auto queued = [] {
    size_t runs = 0;
    for (auto& r : dispatch_stats().runs) runs += r.op == "fill" ? r.runs : 0;
    return runs;
  };
  count_dispatch();
  for (int round = 0; round < 30; ++round) {
    gate->shut();
    reset_dispatch_stats();
    std::atomic<int> told{0};
    std::vector<std::jthread> threads;
    const auto call = [&](double value) {
      threads.emplace_back([&, value] {
        const auto text = error_of([&] { empty({3}, {.device = "sim:0"}).fill_(value); });
        told += value == sim::kFailsLate && has(text, "an accident");
      });
      while (queued() < threads.size()) std::this_thread::yield();
    };
    call(sim::kWaitsAtGate);
    for (double value : {1.0, sim::kFailsLate, 2.0, 3.0}) call(value);
    gate->open();
    threads.clear();
    BOOST_TEST(told.load() == 1);
  }
  BOOST_CHECK_NO_THROW(synchronize());
}

BOOST_AUTO_TEST_CASE(a_call_that_waits_hears_of_its_failure_whoever_else_waits) {
  const auto [status, text] =
      run_alone("failure_told_test/calls_of_several_threads", {"TENON_SYNC=1"});
  BOOST_TEST(status == 0, text);
}

BOOST_AUTO_TEST_CASE(what_nobody_waited_for_is_printed_at_the_end) {
  const auto printed = [](const char* test_case, std::vector<std::string> environment = {}) {
    auto [status, text] =
        run_alone(std::string("failure_told_test/") + test_case, std::move(environment));
    BOOST_TEST(status == 0, text);
    return text;
  };
  std::string text = printed("leaving_errors_untold");
  for (const char* part : {"index 41 at", "index 42 at", "an accident"})
    BOOST_TEST(count(text, part) == 1u, text);
  text = printed("leaving_when_all_was_told");
  BOOST_TEST(!has(text, "index 4"), text);
  text = printed("leaving_very_many_errors_untold");
  BOOST_TEST(count(text, "index 45 at") == 100u);
  BOOST_TEST(has(text, "4900 more failures on cpu:0"), text);
  text = printed("throwing_where_the_call_stands", {"TENON_SYNC=1"});
  BOOST_TEST(!has(text, "index 46"), text);
}

BOOST_AUTO_TEST_SUITE_END()
