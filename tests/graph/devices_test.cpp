// Compiled functions with a model on several devices (DataParallel): the same bits as eager
// execution, and the same state afterwards.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "shared_runs.h"
#include "support/drain.h"

BOOST_AUTO_TEST_SUITE(devices_test)

using namespace tenon;
using namespace test::shared_runs;
using test::places;
using test::same_bits;
using test::says;

BOOST_AUTO_TEST_CASE(a_shared_model_learns_the_same) {
  for (uint32_t devices : {2u, 3u})
    for (auto& make : {sgd, adam}) BOOST_TEST_CONTEXT(devices << " devices") {
        compare(devices, make, 12);
      }
}

BOOST_AUTO_TEST_CASE(with_parts_of_different_sizes) {
  compare(2, sgd, 7);
  compare(3, adam, 13, {.weights = {3, 2, 2}});
}

BOOST_AUTO_TEST_CASE(with_small_buckets) {
  compare(2, sgd, 8, {.bucket_cap_mb = 1e-5});
  compare(3, sgd, 8, {.bucket_cap_mb = 1e-4});
}

BOOST_AUTO_TEST_CASE(a_shared_model_is_evaluated) {
  Run a(2, sgd), b(2, sgd);
  a.net.eval(), b.net.eval();
  auto compiled = compile([&](const Tensor& x) { return b.net(x); });
  NoGrad guard;
  for (int i = 0; i < 8; ++i) {
    const Tensor x = inputs(6);
    BOOST_TEST(same_bits(a.net(x), compiled(x)));
    if (i % 3 != 2) continue;
    // The replicas are refreshed by whoever comes next.
    for (auto* run : {&a, &b})
      for (auto& p : run->net.parameters()) p.mul_(0.9);
  }
  BOOST_TEST(says(compiled, "replayed"));
  require_alike(a.net, b.net);
}

// Training and evaluation, each with its program, take turns: a replica is as new as it has to be.
BOOST_AUTO_TEST_CASE(programs_take_turns) {
  Run a(2, adam), b(2, adam);
  auto step = compile([&](const Tensor& x, const Tensor& y) { return b.step(x, y); });
  auto score = compile([&](const Tensor& x) { return b.net(x).argmax(1); });
  for (int i = 0; i < 10; ++i) {
    const Tensor x = inputs(6), y = targets(6);
    BOOST_TEST(same_twice([&] { return a.step(x, y); }, [&] { return step(x, y); }));
    NoGrad guard;
    a.net.eval(), b.net.eval();
    for (int k = 0; k < 3; ++k) BOOST_TEST(same_bits(a.net(x).argmax(1), score(x)));
    a.net.train(), b.net.train();
  }
  require_alike(a.net, b.net);
}

BOOST_AUTO_TEST_CASE(replicas_with_an_optimizer_each) {
  const auto devices = places(3);
  struct Copies {
    std::vector<Net> nets;
    std::vector<Optimizer> optimizers;
    explicit Copies(const std::vector<Device>& devices)
        : nets(nn::parallel::replicate(Run::seeded(), devices)) {
      for (auto& each : nets) optimizers.push_back(sgd(each.parameters()));
    }
    Tensor step(const Tensor& x, const Tensor& y, const std::vector<Device>& devices) {
      for (auto& optimizer : optimizers) optimizer->zero_grad();
      auto parts = nn::parallel::split_and_load(x, y, devices);
      std::vector<Tensor> losses;
      for (size_t i = 0; i < parts.size(); ++i) {
        losses.push_back(cross_entropy(nets[i](parts[i].first), parts[i].second));
        losses.back().backward();
      }
      nn::parallel::all_reduce_gradients_(nets);
      for (auto& optimizer : optimizers) optimizer->step();
      for (auto& loss : losses) loss = loss.detach();
      return nn::parallel::reduce_add(losses, devices[0]);
    }
  };
  Copies a(devices), b(devices);
  auto compiled = compile([&](const Tensor& x, const Tensor& y) { return b.step(x, y, devices); });
  for (int i = 0; i < 10; ++i) {
    const Tensor x = inputs(9), y = targets(9);
    BOOST_TEST(same_twice([&] { return a.step(x, y, devices); }, [&] { return compiled(x, y); }));
  }
  for (size_t i = 0; i < devices.size(); ++i) require_alike(a.nets[i], b.nets[i]);
  BOOST_TEST(says(compiled, "replayed"));
}

BOOST_AUTO_TEST_CASE(accumulation_without_sums_between) {
  Run a(2, adam), b(2, adam);
  auto pass = [](Run& run, const Tensor& x, const Tensor& y, bool last) {
    std::optional<nn::NoSync> guard;
    if (!last) guard.emplace(run.net.no_sync());
    Tensor loss = cross_entropy(run.net(x), y);
    loss.backward();
    return loss;
  };
  auto compiled = compile([&](const Tensor& x, const Tensor& y) { return pass(b, x, y, true); });
  for (int i = 0; i < 12; ++i) {
    const Tensor x = inputs(6), y = targets(6);
    const bool last = i % 2 == 1;
    BOOST_TEST(same_twice([&] { return pass(a, x, y, last); },
                          [&] { return last ? compiled(x, y) : pass(b, x, y, false); }));
    if (last)
      for (auto* run : {&a, &b}) run->optimizer->step(), run->optimizer->zero_grad();
  }
  require_alike(a.net, b.net);
  BOOST_TEST(says(compiled, "no_sync"));
}

// A call under the guard leaves gradients where they are, which a program could not.
BOOST_AUTO_TEST_CASE(a_guard_around_a_compiled_step_is_noticed) {
  Run a(2, sgd), b(2, sgd);
  auto pass = [](Run& run, const Tensor& x, const Tensor& y) {
    run.optimizer->zero_grad();
    Tensor loss = cross_entropy(run.net(x), y);
    loss.backward();
    return loss;
  };
  auto compiled = compile([&](const Tensor& x, const Tensor& y) { return pass(b, x, y); });
  for (int i = 0; i < 12; ++i) {
    const Tensor x = inputs(6), y = targets(6);
    std::optional<nn::NoSync> guard_a, guard_b;
    if (i == 8) guard_a.emplace(a.net.no_sync()), guard_b.emplace(b.net.no_sync());
    BOOST_TEST(same_twice([&] { return pass(a, x, y); }, [&] { return compiled(x, y); }));
    if (i == 8) {
      guard_a.reset(), guard_b.reset();
      pass(a, x, y), pass(b, x, y);
    }
  }
  require_alike(a.net, b.net);
}

BOOST_AUTO_TEST_CASE(a_model_that_moved_gets_another_program) {
  const auto devices = places(2);
  manual_seed(4);
  nn::Linear a{6, 3};
  nn::Linear b = nn::clone(a);
  auto compiled =
      compile([&](const Tensor& x) { return b(x.to(b.weight.device())).to(x.device()); });
  NoGrad guard;
  for (int i = 0; i < 15; ++i) {
    if (i == 5) a.to(devices[1]), b.to(devices[1]);
    if (i == 10) a.to(devices[0]), b.to(devices[0]);
    const Tensor x = randn({4, 6}, {.device = devices[0]});
    BOOST_TEST(same_bits(a(x.to(a.weight.device())), compiled(x)));
  }
  BOOST_TEST(says(compiled, "3 programs made"));
}

BOOST_AUTO_TEST_CASE(a_shared_model_that_moved_is_an_error_as_always) {
  const auto devices = places(2);
  Run b(2, sgd);
  auto compiled = compile([&](const Tensor& x, const Tensor& y) { return b.step(x, y); });
  for (int i = 0; i < 5; ++i) compiled(inputs(6), targets(6));
  b.net.module.to(devices[1]);
  const Tensor x = inputs(6), y = targets(6);
  const auto expected = error_of([&] { b.step(x, y); });
  BOOST_TEST(expected.find("the model has to be on the first of its devices") != expected.npos);
  BOOST_TEST(error_of([&] { compiled(x, y); }) == expected);
  b.net.module.to(devices[0]);
  for (int i = 0; i < 4; ++i) compiled(inputs(6), targets(6)).wait();
}

BOOST_AUTO_TEST_CASE(a_checkpoint_between_goes_on_as_always) {
  Run a(2, adam), b(2, adam);
  auto compiled = compile([&](const Tensor& x, const Tensor& y) { return b.step(x, y); });
  auto both = [&] {
    const Tensor x = inputs(8), y = targets(8);
    BOOST_TEST(same_twice([&] { return a.step(x, y); }, [&] { return compiled(x, y); }));
  };
  for (int i = 0; i < 6; ++i) both();
  nn::StateDict saved;
  for (auto& [name, t] : nn::state_dict(b.net)) saved.set(name, t.clone());
  for (int i = 0; i < 4; ++i) both();
  load_state_dict(a.net, saved), load_state_dict(b.net, saved);
  for (int i = 0; i < 6; ++i) both();
  require_alike(a.net, b.net);
}

BOOST_AUTO_TEST_SUITE_END()
