// What becomes of failures under copies between the host and a device with streams of its own.
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/shape.h>
#include <tenon/plugins/host/backend.h>
#include <tenon/tenon.h>

#include "process/child.h"
#include "sim/faults.h"
#include "sim/held_up_stream.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(transfer_failures_test, *boost::unit_test::fixture<tenon::test::SimFolder>())

using namespace tenon;
using namespace tenon::test;

BOOST_AUTO_TEST_CASE(values_that_failed_at_once_are_never_read_on_the_host) {
  synchronize();
  Tensor bad = full({100}, sim::kFailsAtOnce, {.device = "sim:0"});
  Tensor copied = bad.to("cpu"), used = copied + 1.0;
  for (int i = 0; i < 2; ++i) {
    require_error<Error>([&] { copied.to_vector<float>(); }, "an accident at once");
    require_error<Error>([&] { used.sum().item(); }, "an accident at once");
    require_error<Error>([&] { bad.to_vector<float>(); }, "an accident at once");
    require_error<Error>([&] { bad.to("sim:1").to_vector<float>(); }, "an accident at once");
  }
  // The pinned memory that it did not reach is as good as new.
  Tensor good = full({100}, 2, {.device = "sim:0"});
  for (int i = 0; i < 20; ++i) {
    BOOST_TEST(good.to("cpu").sum().item() == 200.0);
    BOOST_TEST(full({100}, 3).to("sim:0").sum().item() == 300.0);
  }
  bad.fill_(1);
  BOOST_TEST(bad.to("cpu").sum().item() == 100.0);
  BOOST_CHECK_NO_THROW(synchronize());
}

BOOST_AUTO_TEST_CASE(values_that_failed_late_are_reported_to_who_reads_the_copy) {
  synchronize();
  Tensor a = ones({100}, {.device = "sim:0"}), copied;
  {
    HeldUpStream held("sim:0");
    fill(sim::kFailsLate, "sim:0");
    copied = (a + 1.0).to("cpu") * 2.0;
    held.let_go();
  }
  require_error<Error>([&] { copied.wait(); }, "an accident");
  BOOST_CHECK_NO_THROW(synchronize());  // once
  fill(sim::kFailsLate, "sim:0");
  require_error<Error>([&] { (a + 1.0).sum().item(); }, "an accident");
  BOOST_CHECK_NO_THROW(synchronize());
  BOOST_TEST((a + 1.0).to("cpu").sum().item() == 200.0);
}

BOOST_AUTO_TEST_CASE(values_that_failed_on_the_host_are_never_read_on_the_device) {
  synchronize();
  Tensor bad = embedding(tensor(std::vector<int64_t>{9}), ones({4, 50})), there = bad.to("sim:0"),
         used = there + 1.0;
  BOOST_CHECK_THROW(used.to_vector<float>(), IndexError);
  BOOST_CHECK_THROW(there.sum().item(), IndexError);
  BOOST_CHECK_THROW(there.to("cpu").to_vector<float>(), IndexError);
  there.fill_(1);
  BOOST_TEST(there.to("cpu").sum().item() == 50.0);
  // A part of it is as bad as the whole.
  Tensor whole = empty({4, 50});
  slice(whole, 0, 0, 2).fill_(1);
  slice(whole, 0, 3, 4).fill_(1);
  slice(whole, 0, 2, 3).copy_(bad);
  BOOST_CHECK_THROW(whole.to("sim:0").to_vector<float>(), IndexError);
  BOOST_CHECK_NO_THROW(synchronize());  // reported above
}

// Nothing orders the copy behind what it reads but the host then.
BOOST_AUTO_TEST_CASE(a_device_that_refuses_to_wait_for_another_reads_nothing_too_early) {
  auto* gate = plugins::registry().load("sim").extension<sim::Gate>("sim.gate", 1);
  const Tensor a = full({1000}, 7.0, {.device = "sim:1"});
  Tensor stop = empty({1}, {.device = "sim:1"});
  full({1}, 1.0, {.device = "sim:0"}).wait();
  full({1000}, 5.0, {.device = "sim:1"}).wait();  // whose memory the product gets
  gate->shut();
  stop.fill_(sim::kWaitsAtGate);
  const Tensor product = a * 3.0;
  std::jthread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    gate->open();
  });
  setenv("TENON_SIM_NO_WAIT", "1", 1);
  const Tensor copied = product.to("sim:0");
  unsetenv("TENON_SIM_NO_WAIT");
  require_error<Error>([&] { copied.to_vector<float>(); }, "TENON_SIM_NO_WAIT is set");
  BOOST_TEST(copied.sum().item() == 21000.0);
}

// In processes of their own: the device stays lost.
BOOST_AUTO_TEST_CASE(losing_a_device_under_a_copy,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  const Device lost("sim:1");
  Tensor a = ones({100}, {.device = lost}), before = a.to("cpu"), arrived = before * 2.0;
  arrived.wait();
  a.to("cpu").wait();  // its block of pinned memory will be used again
  HeldUpStream held(lost);
  fill(sim::kLosesDevice, lost);
  Tensor copied = (a + 1.0).to("cpu"), used = copied + 1.0;
  held.let_go();
  for (int i = 0; i < 2; ++i) {
    require_error<Error>([&] { used.sum().item(); }, "device 1 has fallen off the bus");
    require_error<Error>([&] { copied.to_vector<float>(); }, "device 1 has fallen off the bus");
  }
  BOOST_TEST(arrived.sum().item() == 200.0);
  BOOST_TEST((ones({100}) * 2.0).sum().item() == 200.0);
  BOOST_TEST(full({100}, 2, {.device = "sim:0"}).to("cpu").sum().item() == 200.0);
}

BOOST_AUTO_TEST_CASE(a_lost_device_takes_the_copies_under_way_with_it) {
  const auto [status, text] = run_alone("transfer_failures_test/losing_a_device_under_a_copy");
  BOOST_TEST(status == 0, text);
}

BOOST_AUTO_TEST_SUITE_END()
