// A backend with streams, events and memory of its own, as a GPU's is: `sim` (tests/sim).
#include <chrono>
#include <thread>

#include <boost/test/unit_test.hpp>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/base/module_path.h>
#include <tenon/core/dispatch/replica.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/tensor.h>
#include <tenon/tenon.h>

#include "process/child.h"
#include "sim/faults.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(native_stream_test, *boost::unit_test::fixture<tenon::test::SimFolder>())

using namespace tenon;
using namespace tenon::test;

namespace {
void accident(double kind, Device device) { empty({3}, {.device = device}).fill_(kind); }
}  // namespace

BOOST_AUTO_TEST_CASE(values_go_there_are_computed_on_and_come_back) {
  Tensor x = arange(0, 12).reshape({3, 4}).to("sim:0");
  BOOST_TEST(x.device().str() == "sim:0");
  Tensor y = matmul(x, x.t()) + 1.0;
  BOOST_TEST(y.sum().item() == 1134 + 9.0);
  BOOST_TEST(y.to("cpu").to_vector<float>() == y.to_vector<float>());
  BOOST_CHECK_THROW(y.data<float>(), DeviceError);  // the host cannot read there
  BOOST_TEST(x.t().to("cpu:1").to_vector<float>()[1] == 4.0f);
}

BOOST_AUTO_TEST_CASE(devices_copy_to_each_other_in_order) {
  Tensor x = zeros({1000}, {.device = "sim:0"});
  for (int i = 0; i < 100; ++i) x = (x + 1.0).to(i % 2 ? "sim:0" : "sim:1");
  BOOST_TEST(x.sum().item() == 100000.0);
  Tensor mixed = zeros({1000});
  const char* places[] = {"sim:1", "cpu:1", "sim:0", "cpu:0"};
  for (int i = 0; i < 40; ++i) mixed = (mixed + 1.0).to(places[i % 4]);
  BOOST_TEST(mixed.sum().item() == 40000.0);
}

BOOST_AUTO_TEST_CASE(gradients_flow_through_devices) {
  Tensor w = full({4}, 3);
  w.requires_grad_();
  Tensor loss = (w.to("sim:0").square() * 2.0).to("sim:1").sum().to("cpu");
  loss.backward();
  BOOST_TEST(w.grad().to_vector<float>()[2] == 12.0f);
}

BOOST_AUTO_TEST_CASE(replicas_live_on_such_devices_too) {
  Tensor w = full({4}, 3);
  w.requires_grad_();
  allow_replicas(w);
  Tensor a = (w * full({4}, 1, {.device = "sim:0"})).sum(),
         b = (w * full({4}, 2, {.device = "sim:1"})).sum();
  (a.to("cpu") + b.to("cpu")).backward();
  BOOST_TEST(w.grad().to_vector<float>()[0] == 3.0f);
  no_grad([&] { w.copy_(full({4}, 5)); });
  BOOST_TEST((w * full({4}, 1, {.device = "sim:0"})).detach().sum().item() == 20.0);
}

BOOST_AUTO_TEST_CASE(a_late_error_reaches_the_wait_and_the_stream_works_on) {
  Tensor weight = ones({4, 2}, {.device = "sim:0"}),
         bad = tensor(std::vector<int64_t>{9}).to("sim:0");
  Tensor rows = embedding(bad, weight);
  BOOST_CHECK_THROW(rows.wait(), Error);
  BOOST_CHECK_NO_THROW(synchronize());
  BOOST_TEST((ones({2}, {.device = "sim:0"}) + 1.0).sum().item() == 4.0);
}

BOOST_AUTO_TEST_CASE(a_late_error_names_operator_shapes_and_module) {
  synchronize();
  Tensor weight = ones({4, 2}, {.device = "sim:0"}),
         bad = tensor(std::vector<int64_t>{9}).to("sim:0"), rows;
  weight.wait();
  bad.wait();
  {
    ModulePath outer("Net"), inner("table");
    rows = embedding(bad, weight);
    for (int i = 0; i < 20; ++i) rows * 2.0;
  }
  auto text = error_of([&] { synchronize("sim:0"); });
  BOOST_TEST(has(text, "in embedding: (4, 2), (1,) on sim:0, queued by module Net.table"), text);
  BOOST_TEST(!has(text, "mul"), text);
}

BOOST_AUTO_TEST_CASE(a_late_error_without_a_name_lists_what_was_in_flight) {
  synchronize();
  Tensor a = ones({5}, {.device = "sim:0"});
  a.wait();
  for (int i = 0; i < 3; ++i) a + 1.0;
  accident(sim::kFailsUnnamed, "sim:0");
  auto text = error_of([] { synchronize("sim:0"); });
  BOOST_TEST(has(text, "an accident"), text);
  BOOST_TEST(has(text, "in one of the 4 operators in flight:"), text);
  BOOST_TEST(has(text, "fill on sim:0"), text);
  BOOST_TEST(has(text, "add: (5,)"), text);
  for (int i = 0; i < 200; ++i) a + 1.0;  // more than are remembered
  accident(sim::kFailsUnnamed, "sim:0");
  text = error_of([] { synchronize("sim:0"); });
  BOOST_TEST(has(text, "in one of the 64 operators in flight:"), text);
  BOOST_TEST(has(text, "and 56 before them"), text);
  BOOST_CHECK_NO_THROW(synchronize());
}

BOOST_AUTO_TEST_CASE(a_late_error_reaches_who_waits_for_any_of_the_work_in_flight) {
  synchronize();
  Tensor first = ones({5}, {.device = "sim:0"});
  accident(sim::kFailsLate, "sim:0");
  Tensor last = first + 1.0;
  BOOST_CHECK_THROW(last.wait(), IndexError);
  BOOST_CHECK_NO_THROW(synchronize());
}

// The value comes over the cpu's stream, the failure from another's.
BOOST_AUTO_TEST_CASE(a_late_error_reaches_who_reads_a_copy) {
  synchronize();
  Tensor bad = tensor(std::vector<int64_t>{9}).to("sim:0"),
         weight = ones({4, 2}, {.device = "sim:0"});
  auto text = error_of([&] { embedding(bad, weight).sum().item(); });
  BOOST_TEST(has(text, "in embedding: (4, 2), (1,) on sim:0"), text);
  BOOST_CHECK_NO_THROW(synchronize());  // once
  BOOST_CHECK_THROW(embedding(bad, weight).to_vector<float>(), Error);
  Tensor here = embedding(bad, weight).to("cpu");
  BOOST_CHECK_THROW((here + 1.0).wait(), Error);
  BOOST_CHECK_NO_THROW(synchronize());
  // Already known when the copy is queued.
  Tensor known = embedding(bad, weight);
  for (int i = 0; i < 100; ++i) weight + 1.0;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  BOOST_CHECK_THROW(known.to("cpu").wait(), Error);
  BOOST_CHECK_NO_THROW(synchronize());
}

BOOST_AUTO_TEST_CASE(a_warm_training_step_asks_the_system_for_nothing) {
  nn::Sequential model(nn::Linear(20, 30), nn::ReLU(), nn::Linear(30, 5));
  model.to("sim:0");
  optim::SGD optimizer(model.parameters(), {.lr = 0.01, .momentum = 0.9});
  Tensor inputs = randn({16, 20}), labels = randint(0, 5, {16});
  auto step = [&] {
    Tensor x = inputs.to("sim:0"), y = labels.to("sim:0");
    optimizer.zero_grad();
    Tensor loss = cross_entropy(model(x), y);
    loss.backward();
    optimizer.step();
    Tensor guess = model(x).to("cpu");
    return loss.item() + guess.sum().item();
  };
  // Pinned memory, too, which memory_stats does not tell of.
  auto allocations = [] {
    return plugins::registry().load("sim").extension<sim::Counters>("sim.counters", 1)->allocations;
  };
  for (int i = 0; i < 5; ++i) step();
  const auto before = memory_stats("sim:0"), host_before = memory_stats("cpu");
  const uint64_t asked_before = allocations();
  for (int i = 0; i < 1000; ++i) step();
  const auto after = memory_stats("sim:0");
  BOOST_TEST(allocations() == asked_before);
  BOOST_TEST(memory_stats("cpu").system_allocations == host_before.system_allocations);
  BOOST_TEST(after.system_allocations == before.system_allocations);
  BOOST_TEST(after.reserved == before.reserved);
  BOOST_TEST(after.allocations > before.allocations + 1000);
}

BOOST_AUTO_TEST_CASE(small_blocks_are_cut_from_large_ones_that_go_back_when_all_are_free) {
  synchronize();
  empty_cache("sim:1");
  const auto before = memory_stats("sim:1");
  {
    std::vector<Tensor> many;
    for (int i = 0; i < 500; ++i) many.push_back(full({250}, i, {.device = "sim:1"}));
    const auto during = memory_stats("sim:1");
    BOOST_TEST(during.system_allocations ==
               before.system_allocations + 1);  // 500 of 1000 bytes fit into a megabyte
    BOOST_TEST(during.reserved == before.reserved + (1 << 20));
    many.resize(1);
    empty_cache("sim:1");  // one block holds the slab
    BOOST_TEST(memory_stats("sim:1").reserved == during.reserved);
    BOOST_TEST(many[0].sum().item() == 0.0);
  }
  empty_cache("sim:1");
  BOOST_TEST(memory_stats("sim:1").reserved == before.reserved);
  BOOST_TEST(memory_stats("sim:1").allocated == before.allocated);
  Tensor large = ones({1 << 19}, {.device = "sim:1"});  // a block of its own
  BOOST_TEST(memory_stats("sim:1").reserved == before.reserved + (2 << 20));
}

// In a process of its own: the device stays lost.
BOOST_AUTO_TEST_CASE(losing_a_device,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  const Device lost("sim:1");
  Tensor before = ones({100}, {.device = lost}), a = before + 1.0,
         elsewhere = ones({10}, {.device = "sim:0"});
  a.wait();
  Tensor copied = a.to("cpu");
  copied.wait();
  static StreamGraph graph = StreamGraph::capture(lost, [&] { before + 1.0; });
  graph.replay();
  {
    ModulePath path("Net");
    accident(sim::kLosesDevice, lost);
  }
  auto text = error_of([&] { synchronize(lost); });
  BOOST_TEST(has(text,
                 "sim:1 is lost and cannot be used again in this process: device 1 has fallen "
                 "off the bus"),
             text);
  BOOST_TEST(has(text, "queued by module Net"), text);
  // Whatever is asked of it now fails with what happened first, and nothing waits.
  BOOST_TEST(error_of([&] { a + 1.0; }) == text);
  BOOST_TEST(error_of([&] { a.fill_(1); }) == text);
  BOOST_TEST(error_of([&] { a.to_vector<float>(); }) == text);
  BOOST_TEST(error_of([&] { a.to("sim:0"); }) == text);
  BOOST_TEST(error_of([&] { elsewhere.to(lost); }) == text);
  BOOST_TEST(error_of([&] { tensor({1, 2}).to(lost); }) == text);
  BOOST_TEST(error_of([&] { a.wait(); }) == text);
  BOOST_TEST(error_of([&] { synchronize(lost); }) == text);
  BOOST_TEST(error_of([&] { graph.replay(); }) == text);
  BOOST_TEST(error_of([&] { StreamGraph::capture(lost, [] {}); }) == text);
  BOOST_TEST(error_of([&] { ones({1 << 20}, {.device = lost}); }) == text);
  BOOST_CHECK_NO_THROW(empty_cache(lost));
  nn::DataParallel model(nn::Linear(2, 1), {"sim:0", "sim:1"});
  BOOST_TEST(error_of([&] { model(ones({4, 2})); }) == text);
  // What left it before stays, and the others work on.
  BOOST_TEST(copied.sum().item() == 200.0);
  BOOST_TEST((elsewhere * 2.0).sum().item() == 20.0);
  BOOST_TEST((elsewhere.to("cpu") + 1.0).sum().item() == 20.0);
  BOOST_CHECK_NO_THROW(synchronize());
}

BOOST_AUTO_TEST_CASE(losing_a_device_before_a_copy,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  const Device lost("sim:1");
  Tensor a = ones({100}, {.device = lost}), copied;
  accident(sim::kLosesDevice, lost);
  // Where it is queued, it never arrives, and is never read as if it had. Where the allocation of
  // pinned memory comes after the accident, that loses the device, and the copy is refused.
  const auto refused = error_of([&] { copied = a.to("cpu"); });
  for (int i = 0; i < 2 && refused.empty(); ++i)
    require_error<Error>([&] { copied.sum().item(); }, "device 1 has fallen off the bus");
  BOOST_TEST((refused.empty() || has(refused, "device 1 has fallen off the bus")), refused);
  BOOST_TEST((ones({4}) * 2.0).sum().item() == 8.0);
}

BOOST_AUTO_TEST_CASE(losing_a_device_that_another_copies_from,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  auto* gate = plugins::registry().load("sim").extension<sim::Gate>("sim.gate", 1);
  const Device lost("sim:1");
  Tensor stop = empty({1}, {.device = lost}), a = ones({100}, {.device = lost});
  // Queues work behind the gate, and a copy that has to wait for it. Whatever is to happen to the
  // device happens before that work, or waiting for it could be done before.
  auto copy_behind_gate = [&](std::optional<double> happens = {}) {
    gate->shut();
    stop.fill_(sim::kWaitsAtGate);
    if (happens) accident(*happens, lost);
    Tensor made = a + 1.0;
    return std::pair(made, made.to("sim:0"));
  };
  const auto [made, copied] = copy_behind_gate();
  gate->open();
  made.wait();
  Tensor sum = copied.sum();
  const auto [never_made, never_copied] = copy_behind_gate(sim::kLosesDevice);
  gate->open();
  for (int i = 0; i < 2; ++i)
    require_error<Error>([&x = never_made] { x.wait(); }, "device 1 has fallen off the bus");
  // Who reads on the other device is told as well, but not of what was made before.
  BOOST_CHECK_NO_THROW(sum.wait());
  require_error<Error>([&x = never_copied] { x.sum().item(); }, "device 1 has fallen off the bus");
  BOOST_TEST((ones({4}, {.device = "sim:0"}) * 2.0).sum().item() == 8.0);
}

BOOST_AUTO_TEST_CASE(a_lost_device_is_an_error_not_an_end) {
  for (const char* test : {"losing_a_device", "losing_a_device_before_a_copy",
                           "losing_a_device_that_another_copies_from"}) {
    const auto [status, text] = run_alone(std::string("native_stream_test/") + test);
    BOOST_TEST(status == 0, text);
    BOOST_TEST(!has(text, "sim:"), text);
  }
}

// What lives in static storage dies after the devices are closed.
BOOST_AUTO_TEST_CASE(leaving_things_behind,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  static Tensor a, b;
  static nn::DataParallel model(nn::Linear(2, 1), {"sim:0", "sim:1"});
  a = ones({100}, {.device = "sim:0"});
  static StreamGraph graph = StreamGraph::capture("sim:0", [] { b = a + 1.0; });
  graph.replay();
  model(ones({4, 2}, {.device = "sim:0"})).sum().backward();
  for (int i = 0; i < 100; ++i) a = a + 1.0;  // still running at exit
}

BOOST_AUTO_TEST_CASE(at_exit_everything_of_a_device_goes_before_it) {
  const auto [status, text] = run_alone("native_stream_test/leaving_things_behind");
  BOOST_TEST(status == 0, text);
  BOOST_TEST(!has(text, "objects are left"), text);
}

BOOST_AUTO_TEST_CASE(unknown_devices_of_a_known_backend) {
  BOOST_CHECK_THROW(ones({1}, {.device = "sim:7"}), DeviceError);
  BOOST_CHECK_THROW(ones({1}) + ones({1}, {.device = "sim:0"}), DeviceError);
}

BOOST_AUTO_TEST_SUITE_END()
