// Replays on devices with streams of their own.
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "bits.h"
#include "process/child.h"
#include "sim/faults.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(streams_test, *boost::unit_test::fixture<tenon::test::SimFolder>())

using namespace tenon;
using namespace tenon::test;

namespace {
const Device device("sim:0");
}  // namespace

// Memory of a result is new each time: what its last owner did not get is not missed.
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

BOOST_AUTO_TEST_SUITE_END()
