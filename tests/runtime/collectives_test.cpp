// Sums and broadcasts over devices that a plugin joins, and copies where it does not.
#include <cstdlib>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/core/dispatch/replica.h>
#include <tenon/plugins/host/registry.h>
#include <tenon/tenon.h>

#include "parallel/trained.h"
#include "places.h"
#include "sim/faults.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(collectives_test, *boost::unit_test::fixture<tenon::test::SimFolder>())

using namespace tenon;
using namespace tenon::test;

namespace {

sim::Counters counters() {
  return *plugins::registry().load("sim").extension<sim::Counters>("sim.counters", 1);
}

// What happened since it was made.
struct Since {
  sim::Counters before = counters();
  uint64_t launches() const { return counters().joint_launches - before.joint_launches; }
  uint64_t calls() const { return counters().joint_calls - before.joint_calls; }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_step_is_one_sum_and_one_broadcast) {
  nn::DataParallel model(mlp(1), {"sim:0", "sim:1"});
  optim::SGD optimizer(model.parameters(), {.lr = 0.1});
  auto step = [&] {
    optimizer.zero_grad();
    model(ones({6, 8}, {.device = "sim:0"})).square().sum().backward();
    optimizer.step();
  };
  step();
  Since since;
  for (int i = 0; i < 3; ++i) step();
  BOOST_TEST(since.launches() == 6u);
  // Six parameters are summed; with three buffers they are broadcast.
  BOOST_TEST(since.calls() == 3u * (6 + 9));
  // A model that has not changed is not sent again: only what its layers changed while running.
  model.eval();
  model(ones({6, 8}, {.device = "sim:0"}));
  Since unchanged;
  model(ones({6, 8}, {.device = "sim:0"}));
  BOOST_TEST(unchanged.launches() == 0u);
}

BOOST_AUTO_TEST_CASE(each_bucket_of_a_pass_is_a_launch) {
  const auto pass = [](double cap) {
    nn::DataParallel model(mlp(1), {"sim:0", "sim:1", "sim:2"}, {.bucket_cap_mb = cap});
    const Tensor x = arange(0, 56).reshape({7, 8}) / 56, loss = model(x).square().sum();
    const Since since;
    loss.backward();
    const auto launches = since.launches();
    std::vector<std::vector<float>> gradients;
    for (auto& p : model.parameters()) gradients.push_back(p.grad().to_vector<float>());
    return std::pair(launches, gradients);
  };
  const auto each = pass(1e-6), whole = pass(1e9);
  BOOST_TEST(each.first == 6u);
  BOOST_TEST(whole.first == 1u);
  BOOST_TEST((each.second == whole.second));
}

BOOST_AUTO_TEST_CASE(gradients_of_replicas_are_one_sum_for_all_on_the_same_devices) {
  struct Stages : nn::Module<Stages> {
    nn::Linear first{3, 4}, second{4, 2}, empty{0, 2};
    Tensor forward(const Tensor& x) {
      return second(first(x).to(second.weight.device())) +
             empty(x.narrow(1, 0, 0).to(second.weight.device()));
    }
  };
  const Stages model;
  auto trained = [&](const std::vector<std::vector<const char*>>& places) {
    std::vector<Stages> replicas;
    for (auto& place : places) {
      Stages& replica = replicas.emplace_back(nn::clone(model));
      replica.first.to(place[0]);
      replica.second.to(place[1]);
      replica.empty.to(place[1]);
      replica(ones({5, 3}, {.device = place[0]})).square().sum().backward();
    }
    nn::parallel::all_reduce_gradients_(replicas);
    std::vector<std::vector<float>> gradients;
    for (auto& replica : replicas)
      for (auto& p : replica.parameters()) gradients.push_back(p.grad().to_vector<float>());
    return gradients;
  };
  Since since;
  const auto joined = trained({{"sim:0", "sim:1"}, {"sim:2", "sim:0"}});
  BOOST_TEST(since.launches() == 2u);  // of the first stages, and of the others
  BOOST_TEST(since.calls() == 5u);     // one weight has no elements
  BOOST_TEST(largest_difference(joined, trained({{"cpu:0", "cpu:0"}, {"cpu:0", "cpu:0"}})) < 1e-3);
}

BOOST_AUTO_TEST_CASE(sums_are_those_of_one_device_and_the_same_bits_twice) {
  auto two = [] { return trained(nn::DataParallel(mlp(2), {"sim:0", "sim:1"}), "sim:0", 10); };
  auto first = two();
  for (int i = 0; i < 3; ++i) BOOST_TEST((two() == first));
  // Batch normalization sees half a batch on each device, so the reference is two devices of the
  // cpu.
  BOOST_TEST(largest_difference(
                 first, trained(nn::DataParallel(mlp(2), {"cpu:0", "cpu:1"}), "cpu:0", 10)) < 1e-3);
  BOOST_TEST(largest_difference(
                 trained(nn::DataParallel(mlp(2), {"sim:1", "sim:2", "sim:0"}), "sim:1", 10),
                 trained(nn::DataParallel(mlp(2), {"cpu:0", "cpu:1", "cpu:2"}), "cpu:0", 10)) <
             1e-3);
}

BOOST_AUTO_TEST_CASE(the_odd_ones_of_a_mixed_set_go_through_copies) {
  Since since;
  auto mixed = trained(nn::DataParallel(mlp(3), {"sim:0", "cpu:1", "sim:1"}), "sim:0", 5);
  BOOST_TEST(since.launches() == 10u);
  BOOST_TEST(
      largest_difference(mixed, trained(nn::DataParallel(mlp(3), {"cpu:0", "cpu:1", "cpu:2"}),
                                        "cpu:0", 5)) < 1e-3);
  Since alone;
  trained(nn::DataParallel(mlp(3), {"sim:0", "cpu:1"}), "sim:0", 2);
  BOOST_TEST(alone.launches() == 0u);
  // The model on the cpu: the others are summed among themselves first.
  Since around;
  auto other = trained(nn::DataParallel(mlp(3), {"cpu:0", "sim:1", "sim:0"}), "cpu:0", 5);
  BOOST_TEST(around.launches() == 5u);
  BOOST_TEST(
      largest_difference(other, trained(nn::DataParallel(mlp(3), {"cpu:0", "cpu:1", "cpu:2"}),
                                        "cpu:0", 5)) < 1e-3);
}

BOOST_AUTO_TEST_CASE(devices_that_cannot_be_joined_are_asked_once) {
  setenv("TENON_SIM_NO_LINK", "1", 1);
  Since since;
  auto copied = trained(nn::DataParallel(mlp(4), {"sim:2", "sim:1"}), "sim:2", 5);
  unsetenv("TENON_SIM_NO_LINK");
  auto again = trained(nn::DataParallel(mlp(4), {"sim:2", "sim:1"}), "sim:2", 5);
  BOOST_TEST(since.launches() == 0u);
  BOOST_TEST((copied == again));
  BOOST_TEST(largest_difference(
                 copied, trained(nn::DataParallel(mlp(4), {"sim:1", "sim:2"}), "sim:1", 5)) < 1e-3);
  BOOST_TEST(since.launches() == 10u);
}

BOOST_AUTO_TEST_CASE(gradients_belong_to_the_leaf_alone) {
  Tensor w = full({3}, 2, {.device = "sim:0"});
  w.requires_grad_();
  allow_replicas(w);
  auto a = (w * full({3}, 1, {.device = "sim:0"})).sum(),
       b = (w * full({3}, 10, {.device = "sim:1"})).sum();
  Tensor loss = a + b.to("sim:0");
  loss.backward(Tensor(), {.retain_graph = true});
  Tensor first = w.grad();
  BOOST_TEST(first.to_vector<float>()[0] == 11.0f);
  loss.backward();
  BOOST_TEST(first.to_vector<float>()[0] == 11.0f);
  BOOST_TEST(w.grad().to_vector<float>()[2] == 22.0f);
  BOOST_TEST(w.grad().device().str() == "sim:0");
}

BOOST_AUTO_TEST_CASE(a_gradient_that_is_an_expanded_view_is_summed_too) {
  Tensor w = full({3}, 2, {.device = "sim:0"});
  w.requires_grad_();
  allow_replicas(w);
  auto on = [&](const char* device) {
    DeviceGuard guard(device);
    return (w + zeros({3})).sum();  // its gradient is one number, expanded
  };
  (on("sim:0") + on("sim:1").to("sim:0")).backward();
  BOOST_TEST(w.grad().to_vector<float>() == std::vector<float>({2, 2, 2}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(many_threads_train_over_the_same_devices) {
  std::vector<std::thread> threads;
  std::vector<std::vector<std::vector<float>>> results(4);
  for (size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      // Each in its own order of devices, so that locks taken in that order would lock up.
      const char* first = t % 2 ? "sim:0" : "sim:1";
      const char* second = t % 2 ? "sim:1" : "sim:0";
      nn::DataParallel model(nn::Linear(8, 3), {first, second},
                             {.bucket_cap_mb = t < 2 ? 1e-6 : 25});
      nn::init::constant_(model.module.weight, 0.1);
      nn::init::constant_(model.module.bias, 0);
      optim::SGD optimizer(model.parameters(), {.lr = 0.01});
      for (int i = 0; i < 50; ++i) {
        optimizer.zero_grad();
        model(ones({6, 8}, {.device = first})).square().sum().backward();
        optimizer.step();
      }
      for (auto& p : model.parameters()) results[t].push_back(p.to_vector<float>());
    });
  for (auto& t : threads) t.join();
  for (size_t t = 1; t < 4; ++t) BOOST_TEST((results[t] == results[0]));
}

BOOST_AUTO_TEST_CASE(what_was_never_computed_poisons_the_sum_on_all_devices) {
  synchronize();
  for (const uint64_t bucket : {uint64_t{1}, kBucketBytes}) {
    Tensor w = full({3}, 2, {.device = "sim:0"});
    w.requires_grad_();
    allow_replicas(w);
    set_gradient_sums(w, {bucket, false});
    Tensor bad = empty({3}, {.device = "sim:1"});
    bad.fill_(sim::kFailsAtOnce);
    auto a = (w * full({3}, 1, {.device = "sim:0"})).sum(), b = (w * bad).sum();
    (a + b.to("sim:0")).backward();
    BOOST_CHECK_THROW(w.grad().to_vector<float>(), Error);
    BOOST_CHECK_NO_THROW(synchronize());  // it was told
    BOOST_TEST((ones({3}, {.device = "sim:1"}) + 1.0).sum().item() == 6.0);
  }
}

BOOST_AUTO_TEST_CASE(a_late_failure_on_one_device_reaches_the_sum_on_the_others) {
  synchronize();
  for (const uint64_t bucket : {uint64_t{1}, kBucketBytes}) {
    Tensor w = full({3}, 2, {.device = "sim:0"});
    w.requires_grad_();
    allow_replicas(w);
    set_gradient_sums(w, {bucket, false});
    auto on = [&](const char* device) {
      DeviceGuard guard(device);
      return (w * ones({3})).sum();
    };
    Tensor total = on("sim:0") + on("sim:1").to("sim:0");
    total.wait();
    // From here on, only the sum of the gradients brings values of sim:1 to sim:0.
    empty({3}, {.device = "sim:1"}).fill_(sim::kFailsLate);
    total.backward();
    require_error<Error>([&] { w.grad().sum().item(); }, "an accident");
    BOOST_CHECK_NO_THROW(synchronize());
  }
}

BOOST_AUTO_TEST_CASE(a_late_failure_reaches_those_who_read_the_broadcast_values_and_no_others) {
  synchronize();
  const std::vector<Device> devices = {"sim:0", "sim:1"};
  for (const char* failing : {"sim:0", "sim:1"}) {
    Tensor w = full({3}, 2, {.device = "sim:0"});
    allow_replicas(w);
    empty({3}, {.device = failing}).fill_(sim::kFailsLate);
    w.fill_(3);
    Since since;
    refresh_replicas({&w, 1}, devices);
    BOOST_TEST(since.launches() == 1u);
    Tensor primary = w * 1.0, replica;
    {
      DeviceGuard guard("sim:1");
      replica = w * 1.0;
    }
    BOOST_TEST(replica.device().str() == "sim:1");
    if (failing == devices[1].str()) BOOST_TEST(primary.sum().item() == 9.0);
    require_error<Error>([&] { replica.sum().item(); }, "an accident");
    BOOST_CHECK_NO_THROW(synchronize());
  }
}

BOOST_AUTO_TEST_CASE(a_device_that_captures_takes_part_in_nothing) {
  nn::DataParallel model(nn::Linear(8, 3), {"sim:0", "sim:1"});
  Tensor x = ones({6, 8}, {.device = "sim:0"});
  require_error<DeviceError>(
      [&] { StreamGraph::capture("sim:0", [&] { model(x).sum().backward(); }); },
      "while a stream graph of sim:0 is captured");
  BOOST_TEST(model(x).size(0) == 6);
  model(x).sum().item();
}

BOOST_AUTO_TEST_SUITE_END()
