// What fails on a device that records, what others do there meanwhile, and how long graphs live.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "chains.h"
#include "process/child.h"
#include "support/environment.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(device_graph_faults_test,
                      *boost::unit_test::fixture<tenon::test::SimFolder>())

using namespace tenon;
using namespace tenon::test;
using namespace tenon::test::chains;

namespace {

struct Looked : nn::Module<Looked> {
  nn::Embedding embed{5, 8};
  Tensor forward(const Tensor& index) {
    Tensor h = embed(index);
    for (int i = 0; i < 8; ++i) h = sin(h * 2.0);
    return h.sum();
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(what_fails_in_a_graph_is_named_as_without) {
  Looked net;
  net.to(device);
  net.embed.weight.requires_grad_(false);
  std::string texts[2];
  std::vector<double> sound[2];
  for (const bool graphs : {false, true}) {
    auto compiled = compile([&](const Tensor& index) { return net(index); },
                            {.passes = graphs ? kPlanByPlan : kNoGraphs});
    Tensor index = tensor(std::vector<int64_t>{0, 3, 4}).to(device);
    for (int i = 0; i < 8; ++i) compiled(index);
    synchronize();
    const uint64_t before = graph_launches();
    index.copy_(tensor(std::vector<int64_t>{0, 47, 4}));
    Tensor spoilt = compiled(index);
    texts[graphs] = error_of<IndexError>([&] { spoilt.item(); });
    index.copy_(tensor(std::vector<int64_t>{1, 2, 0}));
    synchronize();
    for (int i = 0; i < 3; ++i) sound[graphs].push_back(compiled(index).item());
    BOOST_TEST((graph_launches() == before) == !graphs);
  }
  BOOST_TEST(has(texts[1], "embedding"), texts[1]);
  BOOST_TEST(has(texts[1], "queued by module Looked.embed"), texts[1]);
  BOOST_TEST(texts[0] == texts[1]);
  BOOST_TEST((sound[0] == sound[1]));
}

// An argument without values spoils the result, plan by plan; then graphs are launched again.
BOOST_AUTO_TEST_CASE(what_was_never_computed_spoils_what_depends_on_it) {
  const Chain chain;
  auto compiled = compile(chain, {.passes = kPlanByPlan});
  std::vector<Tensor> kept;
  for (int i = 0; i < 8; ++i) kept.push_back(values()), compiled(kept.back());
  synchronize();
  Tensor x = values();
  x.fill_(sim::kFailsAtOnce);
  const uint64_t before = graph_launches();
  const Tensor spoilt = compiled(x);
  BOOST_TEST(graph_launches() == before);
  BOOST_TEST(has(error_of([&] { spoilt.to_vector<float>(); }), "an accident at once"));
  x = values();
  for (int i = 0; i < 3; ++i) BOOST_TEST(same_bits(compiled(x), chain(x)));
  BOOST_TEST(graph_launches() > before);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_recorded_is_queued_by_itself) {
  const Tensor w = values();
  const auto plain = [&](const Tensor& x) {
    Tensor h = x;
    for (int i = 0; i < 6; ++i) h = sin(h * w);
    Tensor filled = empty({64}, {.device = device});
    filled.fill_(sim::kFailsRecorded);
    h = h * filled;
    for (int i = 0; i < 6; ++i) h = sin(h * w);
    return h;
  };
  auto compiled = compile(plain, {.passes = kPlanByPlan});
  std::vector<Tensor> kept;
  for (int i = 0; i < 10; ++i) {
    kept.push_back(values());
    kept.push_back(compiled(kept.back()));
    BOOST_TEST(same_bits(kept.back(), plain(kept[kept.size() - 2])));
  }
  BOOST_TEST(says(compiled, "device graphs of sim:0: 2, for 23 of 26 plans"));
  BOOST_TEST(says(compiled, "in no device graph, because it cannot be recorded: fill"));
  BOOST_TEST(says(compiled, "this cannot be recorded"));
}

BOOST_AUTO_TEST_CASE(a_device_that_refuses_graphs_is_not_asked_again) {
  for (const char* function : {"begin", "end", "launch"}) {
    const Chain chain;
    auto compiled = compile(chain, {.passes = kPlanByPlan});
    const Tensor x = values();
    {
      const Environment refused("TENON_SIM_NO_GRAPHS", function);
      for (int i = 0; i < 10; ++i) BOOST_TEST(same_bits(compiled(x), chain(x)), function);
    }
    BOOST_TEST(says(compiled, "device graphs of sim:0: none, because a launch failed: ") ==
               (function == std::string("launch")));
    BOOST_TEST(says(compiled, std::string("TENON_SIM_NO_GRAPHS is ") + function));
    const uint64_t before = graph_launches();
    for (int i = 0; i < 5; ++i) BOOST_TEST(same_bits(compiled(x), chain(x)), function);
    BOOST_TEST(graph_launches() == before);
  }
}

// ---- others on the device

BOOST_AUTO_TEST_CASE(a_replay_that_records_waits_for_nothing) {
  const Chain chain;
  auto compiled = compile(chain, {.passes = kPlanByPlan});
  const Tensor x = values(), expected = chain(x);
  for (int i = 0; i < 5; ++i) compiled(x);
  synchronize();
  const uint64_t before = graph_launches();
  Tensor result;
  {
    HeldUpStream held(device);
    result = compiled(x);
    BOOST_TEST(graph_launches() == before + 1);
    result = compiled(x);
  }
  BOOST_TEST(same_bits(result, expected));
}

BOOST_AUTO_TEST_CASE(a_graph_that_is_replaced_may_still_run) {
  const Chain chain;
  auto compiled = compile(chain, {.passes = kPlanByPlan});
  for (int i = 0; i < 3; ++i) compiled(values());
  const Tensor x = values(), other = values(), of_x = chain(x), of_other = chain(other);
  std::vector<Tensor> results;
  for (int i = 0; i < 8; ++i) results.push_back(compiled(x));
  synchronize();
  const uint64_t before = graph_launches();
  {
    HeldUpStream held(device);
    for (int i = 0; i < 3; ++i) results.push_back(compiled(x));
    BOOST_TEST(graph_launches() == before + 3);
    for (int i = 0; i < 4; ++i) results.push_back(compiled(other));
    BOOST_TEST(graph_launches() == before + 6);
  }
  for (size_t i = 0; i < results.size(); ++i)
    BOOST_TEST(same_bits(results[i], i < 11 ? of_x : of_other), i);
}

BOOST_AUTO_TEST_CASE(other_threads_go_on_while_plans_are_recorded) {
  std::atomic<bool> stop{false};
  std::vector<double> sums;
  std::jthread other([&] {
    do {
      Tensor a = full({64}, 2, {.device = device});
      for (int i = 0; i < 20; ++i) a = a * 1.0;
      sums.push_back(a.sum().item());
    } while (!stop);
  });
  for (int round = 0; round < 10; ++round) {
    const Chain chain;
    auto compiled = compile(chain, {.passes = kPlanByPlan});
    for (int i = 0; i < 8; ++i) {
      const Tensor x = values();
      BOOST_TEST(same_bits(compiled(x), chain(x)));
    }
  }
  stop = true;
  other.join();
  BOOST_TEST(!sums.empty());
  BOOST_TEST(std::count(sums.begin(), sums.end(), 128.0) == std::ssize(sums));
}

BOOST_AUTO_TEST_CASE(a_stream_graph_captures_what_the_function_queues) {
  const Chain chain;
  auto compiled = compile(chain, {.passes = kPlanByPlan});
  Tensor x = values(), captured;
  for (int i = 0; i < 8; ++i) compiled(x);
  std::string refusal;
  StreamGraph graph = StreamGraph::capture(device, [&] {
    captured = compiled(x);
    std::jthread([&] { refusal = error_of<DeviceError>([&] { compiled(x); }); });
  });
  BOOST_TEST(has(refusal, "while another thread captures a stream graph of sim:0"), refusal);
  for (int i = 0; i < 3; ++i) {
    x.copy_(values());
    graph.replay();
    BOOST_TEST(same_bits(captured, chain(x)));
    BOOST_TEST(same_bits(compiled(x), chain(x)));
  }
}

// Whoever looks sees each plan.
BOOST_AUTO_TEST_CASE(a_profiler_sees_the_plans) {
  const Chain chain;
  auto compiled = compile(chain, {.passes = kPlanByPlan});
  const Tensor x = values();
  for (int i = 0; i < 8; ++i) compiled(x);
  uint64_t before = graph_launches();
  {
    profiler::Profiler profiler;
    const Tensor y = compiled(x);
    synchronize();
    profiler.stop();
    uint64_t plans = 0;
    for (auto& event : profiler.events()) plans += event.kind == profiler::Kind::op;
    BOOST_TEST(plans == 20u);
  }
  BOOST_TEST(graph_launches() == before);
  BOOST_TEST(same_bits(compiled(x), chain(x)));
  BOOST_TEST(graph_launches() == before + 1);
}

// ---- lifetimes

BOOST_AUTO_TEST_CASE(graphs_go_with_their_program) {
  const Chain chain;
  auto compiled = compile(chain, {.passes = kPlanByPlan});
  const Tensor x = values();
  for (int i = 0; i < 3; ++i) compiled(x);
  synchronize();
  const auto before = counters().live_objects;
  for (int i = 0; i < 5; ++i) compiled(x);
  synchronize();
  BOOST_TEST(counters().live_objects > before);
  const Tensor last = compiled(x);
  synchronize();
  const auto with_graphs = counters().live_objects;
  compiled.reset();
  BOOST_TEST(counters().live_objects < with_graphs);
  BOOST_TEST(same_bits(last, chain(x)));
  for (int i = 0; i < 8; ++i) BOOST_TEST(same_bits(compiled(x), chain(x)));
}

BOOST_AUTO_TEST_CASE(ending_with_graphs,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  static const Chain chain;
  static auto compiled = compile(chain, {.passes = kPlanByPlan});
  static Tensor x = values(), y;
  for (int i = 0; i < 8; ++i) y = compiled(x);
  BOOST_TEST(says(compiled, "device graphs of sim:0: 1"));
}

BOOST_AUTO_TEST_CASE(losing_the_device,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  const Chain chain;
  static auto compiled = compile(chain, {.passes = kPlanByPlan});
  static const Tensor x = values();
  for (int i = 0; i < 8; ++i) compiled(x);
  fill(sim::kLosesDevice, device);
  BOOST_CHECK_THROW(compiled(x).to_vector<float>(), DeviceError);
  BOOST_CHECK_THROW(compiled(x), DeviceError);
}

BOOST_AUTO_TEST_CASE(a_process_ends_while_there_are_graphs) {
  for (const char* name : {"ending_with_graphs", "losing_the_device"}) {
    const auto [status, text] = run_alone(std::string("device_graph_faults_test/") + name);
    BOOST_TEST(status == 0, name << ": " << text);
  }
}

BOOST_AUTO_TEST_SUITE_END()
