// A training step recorded once and replayed: the same bits as running it, in memory of its own;
// and all that cannot be recorded.
#include <optional>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/plugins/host/registry.h>
#include <tenon/tenon.h>

#include "files.h"
#include "places.h"
#include "sim/faults.h"
#include "support/expect.h"
#include "support/sanitized.h"
#include "training/step.h"

BOOST_AUTO_TEST_SUITE(stream_graph_test, *boost::unit_test::fixture<tenon::test::SimFolder>())

using namespace tenon;
using namespace tenon::test;

namespace {

const Device device("sim:0");

// The device computes and allocates.
void check_works() {
  Tensor a = full({100}, 2, {.device = device});
  BOOST_TEST((a * 3.0).sum().item() == 600.0);
}

}  // namespace

BOOST_AUTO_TEST_CASE(twenty_replays_are_twenty_steps_bit_for_bit) {
  Training replayed(device), run(device);
  replayed.next_batch(0);
  replayed.step();
  auto graph = StreamGraph::capture(device, [&] { replayed.step(); });
  BOOST_TEST(graph.num_operators() > 30u);
  BOOST_TEST(graph.device().str() == "sim:0");
  run.next_batch(0);
  run.step();
  for (int64_t i = 1; i <= 20; ++i) {
    replayed.next_batch(i);
    graph.replay();
    run.next_batch(i);
    run.step();
    BOOST_TEST(replayed.loss.item<float>() == run.loss.item<float>());
  }
  BOOST_TEST((replayed.values() == run.values()));
}

BOOST_AUTO_TEST_CASE(replays_take_no_memory) {
  Training t(device);
  t.next_batch(0);
  t.step();
  auto graph = StreamGraph::capture(device, [&] { t.step(); });
  graph.replay();
  t.loss.wait();
  const auto before = memory_stats(device);
  for (int i = 0; i < (kSanitized ? 100 : 1000); ++i) graph.replay();
  t.loss.wait();
  const auto after = memory_stats(device);
  BOOST_TEST(after.allocations == before.allocations);
  BOOST_TEST(after.system_allocations == before.system_allocations);
  BOOST_TEST(after.reserved == before.reserved);
}

BOOST_AUTO_TEST_CASE(the_memory_of_a_graph_is_nobody_elses) {
  Tensor a = full({1000}, 1, {.device = device}), result;
  auto graph = StreamGraph::capture(device, [&] { result = ((a + 1.0) * 2.0 + 3.0) * 1.0; });
  // Blocks that the body freed are as large as these, and must not come out here.
  std::vector<Tensor> others;
  for (int i = 0; i < 50; ++i) others.push_back(full({1000}, i, {.device = device}));
  graph.replay();
  BOOST_TEST(result.to_vector<float>()[999] == 7.0f);
  for (int i = 0; i < 50; ++i)
    BOOST_TEST(others[static_cast<size_t>(i)].to_vector<float>()[500] == static_cast<float>(i));
  a.fill_(2);
  graph.replay();
  BOOST_TEST(result.sum().item() == 9000.0);
}

BOOST_AUTO_TEST_CASE(what_a_graph_reads_lives_as_long_as_it) {
  Tensor result;
  std::optional<StreamGraph> graph;
  {
    Tensor a = full({1000}, 4, {.device = device});
    graph = StreamGraph::capture(device, [&] { result = a + 1.0; });
  }
  for (int i = 0; i < 50; ++i) full({1000}, -1, {.device = device});
  graph->replay();
  BOOST_TEST(result.to_vector<float>()[7] == 5.0f);
}

BOOST_AUTO_TEST_CASE(results_outlive_the_graph_and_the_memory_comes_back) {
  empty_cache(device);
  const auto before = memory_stats(device);
  {
    Tensor result;
    {
      Tensor a = full({300000}, 1, {.device = device});
      auto graph = StreamGraph::capture(device, [&] { result = (a + 1.0) * 2.0; });
      graph.replay();
    }
    BOOST_TEST((result + 1.0).sum().item() == 300000 * 5.0);
    BOOST_TEST(memory_stats(device).allocated > before.allocated);
  }
  BOOST_TEST(memory_stats(device).allocated == before.allocated);
  empty_cache(device);
  BOOST_TEST(memory_stats(device).reserved == before.reserved);
}

BOOST_AUTO_TEST_CASE(results_cannot_be_read_before_the_first_replay) {
  Tensor a = ones({10}, {.device = device}), result;
  auto graph = StreamGraph::capture(device, [&] { result = a + 1.0; });
  BOOST_TEST(
      has(error_of<Error>([&] { result.to_vector<float>(); }), "that has not been replayed yet"));
  BOOST_CHECK_THROW(result.wait(), ValueError);
  graph.replay();
  BOOST_TEST(result.sum().item() == 20.0);
}

BOOST_AUTO_TEST_CASE(a_replay_raises_versions) {
  Tensor a = ones({3}, {.device = device}), w = full({3}, 2, {.device = device}), result;
  w.requires_grad_();
  auto graph = StreamGraph::capture(device, [&] {
    NoGrad guard;
    result = a * 2.0;
    a.copy_(result);
  });
  const auto version = a.version(), of_result = result.version(), untouched = w.version();
  Tensor loss = (w * a).sum();  // saves a
  graph.replay();
  BOOST_TEST(a.version() == version + 1);
  BOOST_TEST(result.version() == of_result + 1);
  BOOST_TEST(w.version() == untouched);
  BOOST_TEST(has(error_of<Error>([&] { loss.backward(); }), "has been changed in place"));
  BOOST_TEST(a.to_vector<float>()[0] == 2.0f);
}

BOOST_AUTO_TEST_CASE(an_in_place_change_waits_for_readers_on_other_devices) {
  Tensor a = zeros({200000}, {.device = device});
  auto graph = StreamGraph::capture(device, [&] { no_grad([&] { a.copy_(a + 1.0); }); });
  for (int i = 0; i < 20; ++i) {
    Tensor elsewhere = a.to("sim:1"), at_home = a.to("cpu");
    graph.replay();
    BOOST_TEST(elsewhere.to_vector<float>()[199999] == static_cast<float>(i));
    BOOST_TEST(at_home.to_vector<float>()[0] == static_cast<float>(i));
  }
}

BOOST_AUTO_TEST_CASE(scalars_and_random_numbers_are_part_of_the_recording) {
  Tensor a = ones({64}, {.device = device}), result;
  double factor = 2;
  auto graph = StreamGraph::capture(device, [&] { result = dropout(a * factor, 0.5, true); });
  factor = 5;
  graph.replay();
  auto first = result.to_vector<float>();
  graph.replay();
  BOOST_TEST((result.to_vector<float>() == first));
  for (float v : first) BOOST_TEST((v == 0.0f || v == 4.0f));
}

BOOST_AUTO_TEST_CASE(plans_are_made_while_capturing_and_outlive_their_cache) {
  Tensor a = ones({7, 11}, {.device = device}), result;
  auto graph =
      StreamGraph::capture(device, [&] { result = matmul(a, a.t()).sum(); });  // never run before
  for (int64_t i = 1; i < 9000; ++i)
    empty({i}, {.device = device}).fill_(1);  // more plans than are kept
  for (int64_t i = 1; i < 9000; ++i) empty({i, 1}, {.device = device}).fill_(1);
  graph.replay();
  BOOST_TEST(result.item() == 539.0);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_recorded_says_so_and_leaves_the_capture_as_it_was) {
  Tensor a = full({10}, 3, {.device = device}), elsewhere = ones({10}, {.device = "sim:1"}), result;
  auto graph = StreamGraph::capture(device, [&] {
    Tensor b = a + 1.0;
    check_refused([&] { b.sum().item(); },
                  "is not possible while a stream graph of sim:0 is captured");
    check_refused([&] { b.to_vector<float>(); }, "a copy from sim:0 to cpu:0 is not possible");
    check_refused([&] { b.wait(); }, "waiting for a value is not possible");
    check_refused([&] { synchronize(device); }, "waiting for a value is not possible");
    check_refused([&] { b.to("sim:1"); }, "a copy from sim:0 to sim:1");
    check_refused([&] { a.to("cpu"); },
                  "a copy from sim:0 to cpu:0");  // though its values were there before
    check_refused([&] { elsewhere.to(device); }, "a copy from sim:1 to sim:0");
    check_refused([&] { tensor({1, 2}).to(device); }, "a copy from cpu:0 to sim:0");
    check_refused([&] { from_host(std::vector<float>{1}.data(), f32, {1}, {.device = device}); },
                  "a copy from the host");
    check_refused([&] { empty_cache(device); }, "waiting for a value");
    check_refused([&] { StreamGraph::capture(device, [] {}); },
                  "a stream graph cannot be captured while");
    BOOST_TEST(!b.is_ready());
    BOOST_TEST((ones({2}, {.device = "sim:1"}) + 1.0).sum().item() == 4.0);  // another device works
    result = b * 2.0;
  });
  graph.replay();
  BOOST_TEST(result.sum().item() == 80.0);
  check_works();
}

BOOST_AUTO_TEST_CASE(another_threads_work_on_the_device_is_refused) {
  Tensor a = full({10}, 3, {.device = device}), result;
  auto graph = StreamGraph::capture(device, [&] {
    result = a + 1.0;
    std::thread([&] {
      check_refused([&] { a * 2.0; },
                    "cannot be queued while another thread captures a stream graph of sim:0");
      check_refused([&] { a.to("cpu"); }, "while another thread captures");
      check_refused([&] { synchronize(device); }, "while another thread captures");
      BOOST_TEST((ones({2}, {.device = "sim:1"}) + 1.0).sum().item() == 4.0);
    }).join();
    result = result * 2.0;
  });
  graph.replay();
  BOOST_TEST(result.sum().item() == 80.0);
  BOOST_TEST(graph.num_operators() == 2u);
}

BOOST_AUTO_TEST_CASE(an_exception_ends_the_capture) {
  const auto before = memory_stats(device).allocated;
  Tensor a = full({10}, 3, {.device = device}), kept;
  BOOST_CHECK_THROW(StreamGraph::capture(device,
                                         [&] {
                                           kept = a + 1.0;
                                           throw std::runtime_error("enough");
                                         }),
                    std::runtime_error);
  check_works();
  BOOST_TEST(has(error_of<Error>([&] { kept.sum().item(); }), ", which failed"));
  BOOST_TEST(a.sum().item() == 30.0);
  kept = Tensor();
  a = Tensor();
  BOOST_TEST(memory_stats(device).allocated == before);
}

BOOST_AUTO_TEST_CASE(an_operator_that_cannot_be_recorded_ends_the_capture) {
  Tensor a = ones({10}, {.device = device});
  for (bool caught : {false, true}) {
    auto text = error_of<Error>([&] {
      StreamGraph::capture(device, [&] {
        Tensor b = a + 1.0;
        try {
          b.fill_(sim::kFailsAtOnce);
        } catch (const Error&) {
          if (!caught) throw;
        }
      });
    });
    BOOST_TEST(has(text, "an accident at once"), text);
    BOOST_TEST(has(text, "in fill on sim:0"), text);
    BOOST_TEST(has(text, "captured into a stream graph"), text);
    check_works();
  }
}

BOOST_AUTO_TEST_CASE(late_errors_of_a_replay_reach_the_next_wait) {
  synchronize();
  Tensor a = ones({10}, {.device = device}), result;
  auto graph = StreamGraph::capture(device, [&] {
    result = a + 1.0;
    full({4}, sim::kFailsLate, {.device = device});
  });
  graph.replay();
  auto text = error_of<Error>([&] { synchronize(device); });
  BOOST_TEST(has(text, "an accident"), text);
  BOOST_TEST(has(text, "replay of a stream graph"), text);
  check_works();
  graph.replay();
  BOOST_CHECK_THROW(result.wait(), IndexError);
  BOOST_CHECK_NO_THROW(synchronize());
}

BOOST_AUTO_TEST_CASE(values_that_were_never_made_stop_a_replay) {
  synchronize();
  Tensor a = full({10}, 1, {.device = device}), sum = full({10}, 7, {.device = device}), result;
  auto graph = StreamGraph::capture(device, [&] {
    result = a + 1.0;
    sum.copy_(sum + a);
  });
  BOOST_CHECK_NO_THROW(a.fill_(sim::kFailsAtOnce));
  graph.replay();
  for (int i = 0; i < 2; ++i) BOOST_CHECK_THROW(result.to_vector<float>(), Error);
  BOOST_TEST(sum.sum().item() == 70.0);  // from before, and not changed
  BOOST_CHECK_NO_THROW(synchronize());   // told already
  a.fill_(5);
  graph.replay();
  BOOST_TEST(result.sum().item() == 60.0);
  BOOST_TEST(sum.sum().item() == 120.0);
}

BOOST_AUTO_TEST_CASE(devices_without_the_extension) {
  auto text =
      error_of<Error>([] { StreamGraph::capture("cpu:0", [] { BOOST_ERROR("the body ran"); }); });
  BOOST_TEST(has(text, "cpu:0"), text);
  BOOST_TEST(has(text, "the plugin \"cpu\" does not offer tn.stream_capture"), text);
  BOOST_CHECK_THROW(StreamGraph::capture("cpu:0", [] {}), UnsupportedError);
}

BOOST_AUTO_TEST_CASE(an_empty_graph_and_a_moved_one) {
  auto graph = StreamGraph::capture(device, [] {});
  BOOST_TEST(graph.num_operators() == 0u);
  graph.replay();
  StreamGraph other = std::move(graph);
  other.replay();
  BOOST_CHECK_THROW(graph.replay(), ValueError);
  check_works();
}

// Lives on when the devices are closed at exit.
BOOST_AUTO_TEST_CASE(a_graph_in_static_storage) {
  static Tensor a = ones({10}, {.device = device}), result;
  static auto graph = StreamGraph::capture(device, [] { result = a + 1.0; });
  graph.replay();
  BOOST_TEST(result.sum().item() == 20.0);
}

BOOST_AUTO_TEST_SUITE_END()
