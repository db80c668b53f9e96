// Replays on devices with streams of their own.
#include <optional>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "../files.h"
#include "bits.h"
#include "process/child.h"
#include "sim/faults.h"
#include "sim/held_up_stream.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(streams_test, *boost::unit_test::fixture<tenon::test::SimFolder>())

using namespace tenon;
using namespace tenon::test;

namespace {
const Device device("sim:0");
}  // namespace

// A result has new memory each time, so it does not matter that values there were never computed.
BOOST_AUTO_TEST_CASE(a_result_may_lie_where_values_were_never_made) {
  const auto plain = [](const Tensor& x) {
    Tensor y = empty({1000}, {.device = device});
    y.narrow(0, 0, 10).copy_(x);
    return y;
  };
  auto compiled = compile(plain);
  for (int i = 0; i < 3; ++i) compiled(ones({10}, {.device = device}));
  for (const bool replayed : {false, true}) {
    synchronize();
    empty({1000}, {.device = device}).fill_(sim::kFailsAtOnce);
    BOOST_CHECK_THROW(synchronize(), Error);
    const Tensor x = ones({10}, {.device = device});
    const Tensor y = replayed ? compiled(x) : plain(x);
    BOOST_CHECK_NO_THROW(y.wait());
    BOOST_TEST(y.narrow(0, 0, 10).sum().item() == 10.0);
  }
  BOOST_TEST(says(compiled, "replayed 2 times"));
}

// With TENON_SYNC=1.
BOOST_AUTO_TEST_CASE(throwing_in_a_replay,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  const Tensor table = ones({4, 3}, {.device = device});
  auto compiled = compile([&](const Tensor& index) { return embedding(index, table).sum({0}); });
  const auto rows = [](int64_t last) { return tensor(std::vector{0L, 1L, last}).to(device); };
  for (int i = 0; i < 4; ++i) compiled(rows(2));
  BOOST_TEST(says(compiled, "replayed 2 times"));
  require_error<IndexError>([&] { compiled(rows(47)); }, "47");
  BOOST_TEST(compiled(rows(3)).sum().item() == 9.0);
  BOOST_TEST(says(compiled, "replayed 3 times"));
}

BOOST_AUTO_TEST_CASE(a_call_that_waits_throws_what_any_of_its_work_threw) {
  const auto [status, text] = run_alone("streams_test/throwing_in_a_replay", {"TENON_SYNC=1"});
  BOOST_TEST(status == 0, text);
}

// Programs run on the first streams of their devices, and so does what their host parts queue.
BOOST_AUTO_TEST_CASE(a_step_under_a_guard_of_a_stream_is_a_step) {
  for (const char* where : {"cpu:0", "sim:0"}) {
    const Device place(where);
    std::vector<double> results[2];
    for (const bool guarded : {false, true}) {
      Tensor w = full({1000}, 1.0, {.device = place}).requires_grad_();
      optim::SGD optimizer({w}, {.lr = 0.5});
      auto step = compile([&](const Tensor& x) {
        optimizer.zero_grad();
        (w * x).sum().backward();
        optimizer.step();
        return w.detach().sum();
      });
      const auto one = [&] { return step(full({1000}, 0.25, {.device = place})); };
      for (int i = 0; i < 3; ++i) results[guarded].push_back(one().item());
      synchronize();
      Stream second(place);
      HeldUpStream held("sim:1");
      const Tensor late = full({1000}, 2, {.device = "sim:1"}) * 1.5;
      const Tensor x = full({1000}, 0.25, {.device = place});
      Tensor behind, found;
      {
        const StreamGuard guard(second);
        behind = late.to(place) * 2.0;
      }
      {
        std::optional<StreamGuard> guard;
        if (guarded) guard.emplace(second);
        found = step(x);
      }
      results[guarded].push_back(found.item());
      held.let_go();
      results[guarded].push_back(one().item());
      BOOST_TEST(says(step, "replayed 3 times"));
    }
    BOOST_TEST(results[0] == results[1]);
  }
}

// What a graph captures is what the function queues, and not what a program of it would.
BOOST_AUTO_TEST_CASE(a_call_inside_a_capture_runs_as_always) {
  TempFolder folder;
  const Tensor w = full({100}, 2.0, {.device = device});
  auto compiled = compile([&](const Tensor& x) { return (x * w).sum({0}) + x; });
  const auto given = [](double value) { return full({100}, value, {.device = device}); };
  for (int i = 0; i < 4; ++i) compiled(given(i));
  BOOST_TEST(says(compiled, "replayed 2 times"));
  compiled.save(folder / "f.tenon");
  Program program = Program::load(folder / "f.tenon");
  Tensor x = given(1), captured;
  std::string refusal;
  StreamGraph graph = StreamGraph::capture(device, [&] {
    captured = compiled(x);
    refusal = error_of<ValueError>([&] { program.run({{"0", x}}); });
  });
  BOOST_TEST(has(refusal, "cannot run: a stream graph is captured"), refusal);
  BOOST_TEST(says(compiled, "replayed 2 times"));
  for (const double value : {3.0, 4.0}) {
    x.fill_(value);
    compiled(given(7));
    graph.replay();
    BOOST_TEST(same_bits(captured, given(value * 201)));
  }
  BOOST_TEST(says(compiled, "replayed 4 times"));
}

BOOST_AUTO_TEST_SUITE_END()
