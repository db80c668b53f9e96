// Programs on a device that records: what stays the same from replay to replay is queued by one
// call, with the same bits, failures and lifetimes as plan by plan.
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "../files.h"
#include "chains.h"
#include "saved_nets.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(device_graphs_test, *boost::unit_test::fixture<tenon::test::SimFolder>())

using namespace tenon;
using namespace tenon::test;
using namespace tenon::test::chains;

BOOST_AUTO_TEST_CASE(what_stays_the_same_is_queued_by_one_call) {
  const Chain chain;
  auto compiled = compile(chain, {.passes = kPlanByPlan});
  auto without = compile(chain, {.passes = kNoGraphs});
  const uint64_t before = graph_launches();
  std::vector<Tensor> kept;  // so that all arguments and results have places of their own
  for (int i = 0; i < 12; ++i) {
    kept.push_back(values());
    kept.push_back(compiled(kept.back()));
    BOOST_TEST(same_bits(kept.back(), without(kept[kept.size() - 2])));
    BOOST_TEST(same_bits(kept.back(), chain(kept[kept.size() - 2])));
  }
  BOOST_TEST(says(compiled, "replayed 10 times"));
  BOOST_TEST(graph_launches() - before == 7u);  // from the fourth replay on
  BOOST_TEST(says(compiled, "device graphs of sim:0: 1, for 18 of 20 plans"));
  BOOST_TEST(without.explain().find("device graphs") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(few_plans_make_no_graph) {
  const Tensor w = values();
  auto compiled = compile([&](const Tensor& x) { return sin(sin(sin(x * w) * w) * w); },
                          {.passes = kPlanByPlan});
  const uint64_t before = graph_launches();
  std::vector<Tensor> kept;
  for (int i = 0; i < 10; ++i) kept.push_back(values()), kept.push_back(compiled(kept.back()));
  BOOST_TEST(graph_launches() == before);
  BOOST_TEST(says(compiled, "device graphs of sim:0: 0, for 0 of 6 plans"));
}

// Where an argument comes back in the same place, it is part of the graph, until it does not.
BOOST_AUTO_TEST_CASE(a_place_that_changes_after_all_is_noticed) {
  const Chain chain;
  auto compiled = compile(chain, {.passes = kPlanByPlan});
  for (int i = 0; i < 3; ++i) compiled(values());
  std::vector<Tensor> arguments = {values()}, results;
  const uint64_t before = graph_launches();
  for (int i = 0; i < 60; ++i) {
    if (i % 13 == 12)
      arguments.push_back(values());
    else
      arguments.back().copy_(values());
    results.push_back(compiled(arguments.back()));
    BOOST_TEST(same_bits(results.back(), chain(arguments.back())), i);
    if (i == 11) BOOST_TEST(says(compiled, "device graphs of sim:0: 1, for 19 of 20 plans"));
  }
  BOOST_TEST(says(compiled, "device graphs of sim:0: 1, for 18 of 20 plans"));
  BOOST_TEST(graph_launches() - before > 50u);
}

// As gradients do, which the function leaves elsewhere whenever it runs to be compared.
BOOST_AUTO_TEST_CASE(what_changes_seldom_is_in_the_graph_again) {
  const Chain chain;
  auto compiled = compile(chain, {.passes = kPlanByPlan, .measure = false});
  for (int i = 0; i < 3; ++i) compiled(values());
  std::vector<Tensor> arguments;
  for (int turn = 0; turn < 5; ++turn) {
    arguments.push_back(values());
    for (int i = 0; i < 100; ++i) compiled(arguments.back());
    BOOST_TEST(says(compiled, "device graphs of sim:0: 1, for 20 of 20 plans"), compiled.explain());
    BOOST_TEST(same_bits(compiled(arguments.back()), chain(arguments.back())));
  }
}

// Memory that was returned may come back in the same place, and no driver says what a graph makes
// of that.
BOOST_AUTO_TEST_CASE(memory_that_was_returned_to_the_system_is_in_no_graph) {
  const Chain chain;
  auto compiled = compile(chain, {.passes = kPlanByPlan});
  for (int i = 0; i < 3; ++i) compiled(values());
  const Tensor x = values();
  for (int i = 0; i < 12; ++i) compiled(x);
  BOOST_TEST(says(compiled, "device graphs of sim:0: 1, for 20 of 20 plans"));
  const uint64_t before = graph_launches();
  empty({1 << 20}, {.device = device}).fill_(1);
  empty_cache(device);
  BOOST_TEST(same_bits(compiled(x), chain(x)));
  BOOST_TEST(graph_launches() == before);
  for (int i = 0; i < 12; ++i) BOOST_TEST(same_bits(compiled(x), chain(x)));
  BOOST_TEST(graph_launches() > before + 8);
}

namespace {

// A perceptron with dropout that learns, compiled and as always.
struct Twins {
  saved::Run<saved::Perceptron> plain, other;
  explicit Twins(const saved::MakeOptimizer& make) : plain(begin(make)), other(begin(make)) {}
  static saved::Run<saved::Perceptron> begin(const saved::MakeOptimizer& make) {
    manual_seed(5);
    saved::Run<saved::Perceptron> run([](std::vector<Tensor>) { return saved::Optimizer(); });
    run.net.to(device);
    run.optimizer = make(run.net.parameters());
    return run;
  }
  void require_alike() {
    const auto p = plain.net.parameters(), q = other.net.parameters();
    for (size_t i = 0; i < p.size(); ++i) {
      BOOST_TEST(same_bits(p[i], q[i]));
      BOOST_TEST(same_bits(p[i].grad(), q[i].grad()));
      BOOST_TEST(p[i].version() == q[i].version());
      BOOST_TEST(p[i].grad().version() == q[i].grad().version());
    }
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(steps_are_steps_whatever_changes_in_between) {
  Twins t(saved::making<optim::Adam>(optim::AdamOptions{.lr = 0.01}));
  auto step = compile([&](const Tensor& x, const Tensor& y) { return t.other.step(x, y); },
                      {.passes = {.pointwise = false}});
  optim::StepLR schedule_a(*t.plain.optimizer, 3), schedule_b(*t.other.optimizer, 3);
  std::vector<Tensor> kept;
  const uint64_t before = graph_launches();
  for (int i = 0; i < 40; ++i) {
    const Tensor x = randn({4, 6}).to(device), y = randint(0, 3, {4}).to(device);
    // A gradient that somebody has stays, and the next one lies elsewhere.
    if (i == 12) kept.push_back(t.other.net.parameters()[0].grad());
    if (i == 18) empty_cache(device);
    if (i == 30)
      for (auto* net : {&t.plain.net, &t.other.net})
        no_grad([&] { net->fc1.bias = nn::Parameter(full({8}, 0.25, {.device = device})); });
    const RandomState state = random_state();
    const Tensor expected = t.plain.step(x, y);
    set_random_state(state);
    BOOST_TEST(same_bits(step(x, y), expected), i);
    schedule_a.step(), schedule_b.step();
  }
  t.require_alike();
  BOOST_TEST(graph_launches() - before > 12u);
}

BOOST_AUTO_TEST_CASE(sizes_that_share_memory_take_turns) {
  Twins t(saved::making<optim::SGD>(optim::SGDOptions{.lr = 0.1}));
  auto step = compile([&](const Tensor& x, const Tensor& y) { return t.other.step(x, y); },
                      {.passes = {.pointwise = false}, .dynamic = {0}});
  const uint64_t before = graph_launches();
  for (int i = 0; i < 60; ++i) {
    const int64_t n = 3 + i % 4 + (i >= 20 && i % 4 == 0 ? 30 : 0);  // a larger one comes later
    const Tensor x = randn({n, 6}).to(device), y = randint(0, 3, {n}).to(device);
    const RandomState state = random_state();
    const Tensor expected = t.plain.step(x, y);
    set_random_state(state);
    BOOST_TEST(same_bits(step(x, y), expected), i);
  }
  t.require_alike();
  BOOST_TEST(graph_launches() > before);
}

BOOST_AUTO_TEST_CASE(a_program_of_a_file_uses_the_rate_that_is_set) {
  TempFolder folder;
  Twins t(saved::making<optim::SGD>(optim::SGDOptions{.lr = 0.1, .momentum = 0.9}));
  auto step = compile([&](const Tensor& x, const Tensor& y) { return t.other.step(x, y); },
                      {.passes = {.pointwise = false}});
  const auto batch = [] {
    return std::pair(randn({4, 6}).to(device), randint(0, 3, {4}).to(device));
  };
  for (int i = 0; i < 3; ++i) {
    const auto [x, y] = batch();
    step(x, y);
  }
  step.save(folder / "step.tenon", {.inputs = {"x", "y"}, .outputs = {"loss"}});
  Program with = Program::load(folder / "step.tenon");
  Program without = Program::load(folder / "step.tenon", {.device_graphs = false});
  const uint64_t before = graph_launches();
  for (int i = 0; i < 24; ++i) {
    const auto [x, y] = batch();
    if (i % 8 == 7)
      for (auto* program : {&with, &without}) program->set("lr", 0.1 / i);
    const Tensor loss = with.run({{"x", x}, {"y", y}})["loss"];
    BOOST_TEST(same_bits(loss, without.run({{"x", x}, {"y", y}})["loss"]), i);
  }
  BOOST_TEST(graph_launches() > before);
}

BOOST_AUTO_TEST_SUITE_END()
