// CUDA graphs behind StreamGraph: a whole training step recorded once, replayed with new batches,
// beside the steps themselves.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/core/runtime/context.h>

#include "cuda/emulated.h"
#include "files.h"
#include "parallel/trained.h"
#include "training/step.h"

using namespace tenon;
using namespace tenon::test;
BOOST_TEST_GLOBAL_FIXTURE(EmulatedCuda);

namespace {

const Device gpu("cuda:0");
const int64_t kSide = device_is_slow() ? 12 : 28;  // of the pictures

bool on_a_real_gpu() { return std::getenv("TENON_TEST_GPU") != nullptr; }

// The same bits where the device is emulated. On a real one other memory may mean other kernels of
// the vendor's libraries.
bool same(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
  return on_a_real_gpu() ? largest_difference(a, b) < 1e-4 : a == b;
}
bool same(const Tensor& a, const Tensor& b) {
  const std::vector<std::vector<float>> left = {a.to_vector<float>()},
                                        right = {b.to_vector<float>()};
  return same(left, right);
}

// The device computes and allocates.
void check_works() {
  Tensor a = full({100}, 2, {.device = gpu});
  BOOST_TEST((a * 3.0).sum().item() == 600.0);
}

// An operator's plan has to be there before it is captured.
template <class F>
StreamGraph warm_and_capture(F&& body) {
  body();
  return StreamGraph::capture(gpu, body);
}

}  // namespace

BOOST_AUTO_TEST_CASE(replays_are_steps) {
  Training replayed(gpu, false, kSide), run(gpu, false, kSide);
  for (auto* t : {&replayed, &run}) t->next_batch(0), t->step();
  auto graph = StreamGraph::capture(gpu, [&] { replayed.step(); });
  BOOST_TEST(graph.num_operators() > 30u);
  BOOST_TEST(
      same(replayed.model.parameters()[0], run.model.parameters()[0]));  // to capture is not to run
  for (int64_t i = 1; i <= (device_is_slow() ? 2 : 5); ++i) {
    replayed.next_batch(i);
    graph.replay();
    run.next_batch(i);
    run.step();
    BOOST_TEST(same(replayed.loss, run.loss), "step " << i);
  }
  BOOST_TEST(same(replayed.values(), run.values()));
}

// Scalars are part of a recording, Adam's count of steps among them: replays are steps that all
// think they are the second.
BOOST_AUTO_TEST_CASE(replays_of_adam_stand_still_in_its_count) {
  Training replayed(gpu, true, kSide), run(gpu, true, kSide);
  for (auto* t : {&replayed, &run}) t->next_batch(0), t->step();
  auto graph = StreamGraph::capture(gpu, [&] { replayed.step(); });
  for (int64_t i = 1; i <= 3; ++i) {
    replayed.next_batch(i);
    graph.replay();
    auto state = run.optimizer->state_dict();
    for (auto& [name, value] : state.numbers)
      if (name.ends_with(".step")) value = 1;
    run.optimizer->load_state_dict(state);
    run.next_batch(i);
    run.step();
    BOOST_TEST(same(replayed.loss, run.loss), "step " << i);
  }
  BOOST_TEST(same(replayed.values(), run.values()));
}

BOOST_AUTO_TEST_CASE(work_between_replays_is_in_order_with_them) {
  Training replayed(gpu, false, kSide), run(gpu, false, kSide);
  for (auto* t : {&replayed, &run}) t->next_batch(0), t->step();
  auto graph = StreamGraph::capture(gpu, [&] { replayed.step(); });
  const Tensor loss = replayed.loss;  // the step of its own makes another
  for (int64_t i = 1; i <= 3; ++i) {
    for (auto* t : {&replayed, &run}) t->next_batch(i);
    i % 2 ? graph.replay() : replayed.step();  // a step of its own between two replays
    run.step();
  }
  const Tensor total = (loss * 1.0).to("cpu");
  BOOST_TEST(same(total, run.loss));
  for (size_t i = 0; i < run.model.parameters().size(); ++i)
    BOOST_TEST(same(replayed.model.parameters()[i], run.model.parameters()[i]), "parameter " << i);
}

BOOST_AUTO_TEST_CASE(replays_take_no_memory) {
  Training t(gpu, false, kSide);
  t.next_batch(0);
  t.step();
  auto graph = StreamGraph::capture(gpu, [&] { t.step(); });
  graph.replay();
  synchronize(gpu);
  const auto before = memory_stats(gpu);
  for (int i = 0; i < 3; ++i) graph.replay();
  synchronize(gpu);
  const auto after = memory_stats(gpu);
  BOOST_TEST(after.allocations == before.allocations);
  BOOST_TEST(after.system_allocations == before.system_allocations);
  BOOST_TEST(after.allocated == before.allocated);
  BOOST_TEST(after.reserved == before.reserved);
}

BOOST_AUTO_TEST_CASE(the_memory_of_a_graph_is_nobody_elses) {
  Tensor a = full({1000}, 1, {.device = gpu}), result;
  auto graph = warm_and_capture([&] { result = ((a + 1.0) * 2.0 + 3.0) * 1.0; });
  graph.replay();
  // Blocks that the body freed are as large as these, and must not come out here; nor may these
  // change what the replay has left.
  std::vector<Tensor> others;
  for (int i = 0; i < 50; ++i) others.push_back(full({1000}, i, {.device = gpu}) + 0.5);
  BOOST_TEST(result.to_vector<float>() == std::vector<float>(1000, 7));
  a.fill_(2);
  graph.replay();
  for (int i = 0; i < 50; ++i)
    BOOST_TEST(others[static_cast<size_t>(i)].sum().item() == 1000 * (i + 0.5));
  BOOST_TEST(result.sum().item() == 9000.0);
}

BOOST_AUTO_TEST_CASE(two_graphs_share_nothing_but_what_both_use) {
  Tensor a = full({500}, 1, {.device = gpu}), sum, product;
  auto adds = warm_and_capture([&] { sum = (a + 1.0) + 1.0; });
  auto multiplies = warm_and_capture([&] { product = (a * 3.0) * 2.0; });
  for (int i = 1; i <= 3; ++i) {
    a.fill_(i);
    adds.replay();
    multiplies.replay();
    BOOST_TEST(sum.sum().item() == 500 * (i + 2.0));
    BOOST_TEST(product.sum().item() == 500 * (i * 6.0));
  }
}

BOOST_AUTO_TEST_CASE(memory_comes_back_when_the_graph_and_its_results_are_gone) {
  { Training(gpu, false, kSide).step(); }
  synchronize(gpu);
  empty_cache(gpu);
  const auto before = memory_stats(gpu);
  {
    Tensor loss;
    {
      Training t(gpu, false, kSide);
      t.next_batch(0);
      t.step();
      auto graph = StreamGraph::capture(gpu, [&] { t.step(); });
      graph.replay();
      loss = t.loss;
    }
    BOOST_TEST(std::isfinite(loss.item()));  // a result outlives the graph
    BOOST_TEST(memory_stats(gpu).allocated > before.allocated);
  }
  BOOST_TEST(memory_stats(gpu).allocated == before.allocated);
  empty_cache(gpu);
  BOOST_TEST(memory_stats(gpu).reserved == before.reserved);
}

BOOST_AUTO_TEST_CASE(a_graph_outlives_its_tensors) {
  Tensor result;
  std::optional<StreamGraph> graph;
  {
    Tensor a = full({1000}, 4, {.device = gpu}), b = full({1000}, 3, {.device = gpu});
    graph = warm_and_capture([&] { result = a * b + 1.0; });
  }
  for (int i = 0; i < 20; ++i) full({1000}, -1, {.device = gpu});
  graph->replay();
  BOOST_TEST(result.to_vector<float>() == std::vector<float>(1000, 13));
  result = Tensor();
  graph->replay();
  synchronize(gpu);
  graph.reset();
  check_works();
}

BOOST_AUTO_TEST_CASE(results_are_not_there_before_the_first_replay) {
  Tensor a = ones({10}, {.device = gpu}), result;
  auto graph = warm_and_capture([&] { result = a + 1.0; });
  BOOST_TEST(has(error_of<ValueError>([&] { result.to_vector<float>(); }),
                 "that has not been replayed yet"));
  graph.replay();
  BOOST_TEST(result.sum().item() == 20.0);
}

// The seed is that of the capture: every replay draws what a step with that seed draws. Afterwards
// the generator goes on as if the body had run once.
BOOST_AUTO_TEST_CASE(random_numbers_are_those_of_the_capture) {
  Tensor x = full({3000}, 2, {.device = gpu}), dropped, noise;
  auto draw = [&] {
    dropped = dropout(x, 0.25, true);
    noise = randn({999}, {.device = gpu});
  };
  draw();
  manual_seed(42);
  auto graph = StreamGraph::capture(gpu, draw);
  Tensor of_graph = dropped, of_graph_noise = noise, next = rand({100});
  graph.replay();
  const auto first = of_graph.to_vector<float>();
  graph.replay();
  BOOST_TEST((of_graph.to_vector<float>() == first));
  manual_seed(42);
  draw();
  BOOST_TEST((dropped.to_vector<float>() == first));
  BOOST_TEST((noise.to_vector<float>() == of_graph_noise.to_vector<float>()));
  BOOST_TEST((rand({100}).to_vector<float>() == next.to_vector<float>()));
  const auto zero = std::count(first.begin(), first.end(), 0.0f);
  BOOST_TEST((zero > 600 && zero < 900));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_recorded_leaves_the_capture_as_it_was) {
  Tensor a = full({10}, 3, {.device = gpu}), result;
  auto body = [&] { result = (a + 1.0) * 2.0; };
  body();
  a.sum();
  auto graph = StreamGraph::capture(gpu, [&] {
    Tensor b = a + 1.0;
    check_refused([&] { b.sum().item(); },
                  "is not possible while a stream graph of cuda:0 is captured");
    check_refused([&] { b.to_vector<float>(); }, "a copy from cuda:0 to cpu:0 is not possible");
    check_refused([&] { a.to("cpu"); }, "a copy from cuda:0 to cpu:0");
    check_refused([&] { a.copy_(ones({10})); }, "a copy from cpu:0 to cuda:0");
    check_refused([&] { tensor({1.0f}).to(gpu); }, "a copy from cpu:0 to cuda:0");
    check_refused([&] { b.wait(); }, "waiting for a value is not possible");
    check_refused([&] { synchronize(gpu); }, "waiting for a value is not possible");
    check_refused([&] { StreamGraph::capture(gpu, [] {}); },
                  "a stream graph cannot be captured while");
    check_refused([&] { a[0].item(); }, "is captured");
    // Refused before it has a plan, and one that was never run.
    check_refused([&] { add(a, ones({3}, {.device = "cpu:0"})); }, "cuda:0");
    check_refused([&] { gelu(a); }, "run the work once before you capture it");
    result = b * 2.0;
  });
  BOOST_TEST(graph.num_operators() >= 2u);
  graph.replay();
  BOOST_TEST(result.sum().item() == 80.0);
  check_works();
}

BOOST_AUTO_TEST_CASE(a_replay_within_a_capture_is_refused) {
  Tensor a = ones({10}, {.device = gpu}), b, c;
  auto first = warm_and_capture([&] { b = a + 1.0; });
  auto second = StreamGraph::capture(gpu, [&] {
    check_refused([&] { first.replay(); }, "a stream graph cannot be replayed while");
    c = a + 1.0;
  });
  first.replay();
  second.replay();
  BOOST_TEST((b + c).sum().item() == 40.0);
}

BOOST_AUTO_TEST_CASE(an_exception_ends_the_capture) {
  synchronize(gpu);
  const auto before = memory_stats(gpu).allocated;
  {
    Tensor a = full({10}, 3, {.device = gpu}), kept = a + 1.0;
    BOOST_CHECK_THROW(StreamGraph::capture(gpu,
                                           [&] {
                                             kept = a + 1.0;
                                             throw std::runtime_error("enough");
                                           }),
                      std::runtime_error);
    BOOST_TEST(has(error_of<ValueError>([&] { kept.sum().item(); }), ", which failed"));
    check_works();
    BOOST_TEST(a.sum().item() == 30.0);
  }
  BOOST_TEST(memory_stats(gpu).allocated == before);
}

BOOST_AUTO_TEST_CASE(no_memory_left_ends_the_capture) {
  const auto total = static_cast<int64_t>(describe_devices("cuda")[0].memory_total);
  Tensor a = ones({10}, {.device = gpu}), result = a + 1.0;
  const auto text = error_of<OutOfMemoryError>([&] {
    StreamGraph::capture(gpu, [&] {
      result = a + 1.0;
      empty({total}, {.device = gpu});
    });
  });
  BOOST_TEST(has(text, "cannot allocate"), text);
  auto graph = StreamGraph::capture(gpu, [&] { result = a + 1.0; });
  graph.replay();
  BOOST_TEST(result.sum().item() == 20.0);
}

// Caught or not, there is no graph: something of it would be missing.
BOOST_AUTO_TEST_CASE(an_operator_that_fails_ends_the_capture) {
  if (on_a_real_gpu()) {
    BOOST_TEST_MESSAGE("skipped: a real GPU does not refuse a kernel on request");
    return;
  }
  Tensor a = ones({10}, {.device = gpu}), result = (a + 1.0) * 2.0;
  for (bool caught : {false, true}) {
    const auto text = error_of<Error>([&] {
      StreamGraph::capture(gpu, [&] {
        result = a + 1.0;
        setenv("TENON_EMULATED_REFUSE", "1", 1);
        try {
          result = result * 2.0;
        } catch (const Error&) {
          unsetenv("TENON_EMULATED_REFUSE");
          if (!caught) throw;
        }
      });
    });
    BOOST_TEST(has(text, "kernel launch"), text);
    BOOST_TEST(has(text, "in mul:"), text);
    BOOST_TEST(has(text, "captured into a stream graph"), text);
    check_works();
  }
}

BOOST_AUTO_TEST_CASE(a_bad_label_in_a_replayed_batch) {
  synchronize(gpu);
  Training t(gpu, false, kSide);
  t.next_batch(0);
  t.step();
  auto graph = StreamGraph::capture(gpu, [&] { t.loss = cross_entropy(t.model(t.x), t.y); });
  graph.replay();
  const float sound = t.loss.item<float>();
  t.y.copy_(tensor(std::vector<int64_t>{1, 2, 77, 3}));
  graph.replay();
  const auto text = error_of<IndexError>([&] { t.loss.item(); });
  BOOST_TEST(has(text, "label 77 in row 2 lies outside [0, 10)"), text);
  BOOST_TEST(has(text, "replay of a stream graph"), text);
  t.next_batch(0);
  graph.replay();
  BOOST_TEST(t.loss.item<float>() == sound);
  synchronize(gpu);
}

BOOST_AUTO_TEST_CASE(versions_tell_autograd_of_a_replay) {
  Tensor a = ones({3}, {.device = gpu}), w = full({3}, 2, {.device = gpu});
  w.requires_grad_();
  auto graph = warm_and_capture([&] { no_grad([&] { a.copy_(a * 2.0); }); });
  Tensor loss = (w * a).sum();  // saves a
  graph.replay();
  BOOST_TEST(has(error_of<Error>([&] { loss.backward(); }), "has been changed in place"));
  BOOST_TEST(a.to_vector<float>()[0] == 4.0f);
}

BOOST_AUTO_TEST_CASE(copies_that_are_under_way_are_not_overtaken) {
  Tensor a = zeros({200000}, {.device = gpu});
  auto graph = warm_and_capture([&] { no_grad([&] { a.copy_(a + 1.0); }); });
  for (int i = 1; i <= 10; ++i) {
    Tensor before = a.to("cpu");
    graph.replay();
    BOOST_TEST(before.to_vector<float>()[199999] == static_cast<float>(i));
  }
}

// Lives on when the device is closed at exit.
BOOST_AUTO_TEST_CASE(a_graph_in_static_storage) {
  static Tensor a = ones({10}, {.device = gpu}), result;
  static auto graph = warm_and_capture([] { result = a + 1.0; });
  graph.replay();
  BOOST_TEST(result.sum().item() == 20.0);
}
