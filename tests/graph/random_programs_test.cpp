// Random functions of operators, views, changes in place and gradients: the compiled form gives the
// same bits as the function, in results, in what it changed, and in what stayed. On one device and
// on several.
#include <cstdint>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "bits.h"
#include "fuzz.h"
#include "random_functions.h"

BOOST_AUTO_TEST_SUITE(random_programs_test)

using namespace tenon;
using test::Choices;
using test::make_world;
using test::same_bits;
using test::World;

namespace {

// Makes an argument of a call: new memory, a part of a larger tensor, or what another call had.
Tensor argument(Choices& c, const Tensor& data, const Tensor& before) {
  switch (c.below(3)) {
    case 0:
      return randn({4, 4}).to(data.device());
    case 1:
      return data.narrow(0, static_cast<int64_t>(c.below(13)), 4);
    default:
      return before;
  }
}

// Returns whether all calls of one function agree.
bool agree(uint64_t seed, const std::vector<Device>& devices, uint64_t& replayed) {
  World plain = make_world(seed, devices), other = make_world(seed, devices);
  auto compiled = compile(
      [&](const Tensor& x, const Tensor& y) { return test::run_function(seed, other, x, y); });
  Choices c(seed ^ 0x9e3779b97f4a7c15u);
  const Tensor data_x = randn({16, 4}), data_y = data_x.to(devices[seed % devices.size()]);
  Tensor x = randn({4, 4}), y = data_y.narrow(0, 3, 4);
  std::vector<Tensor> kept, expected_kept;
  for (int call = 0; call < 9; ++call) {
    x = argument(c, data_x, x);
    y = argument(c, data_y, c.chance(0.2) && x.device() == y.device() ? x : y);
    const RandomState state = random_state();
    const auto expected = test::run_function(seed, plain, x, y);
    const RandomState after = random_state();
    set_random_state(state);
    const auto found = compiled(x, y);
    if (!same_bits(expected, found) || !(random_state() == after)) return false;
    if (!same_bits(plain.state, other.state) || !same_bits(plain.leaves, other.leaves))
      return false;
    for (size_t i = 0; i < plain.leaves.size(); ++i) {
      const Tensor a = plain.leaves[i].grad(), b = other.leaves[i].grad();
      if (!same_bits(a, b) || plain.leaves[i].version() != other.leaves[i].version()) return false;
      if (b.defined() && c.chance(0.3)) expected_kept.push_back(a), kept.push_back(b);
      if (c.chance(0.1)) plain.leaves[i].set_grad(Tensor()), other.leaves[i].set_grad(Tensor());
    }
    expected_kept.insert(expected_kept.end(), expected.begin(), expected.end());
    kept.insert(kept.end(), found.begin(), found.end());
  }
  const std::string text = compiled.explain();
  if (const auto at = text.find("replayed "); at != text.npos)
    replayed += std::stoull(text.substr(at + 9));
  return same_bits(expected_kept, kept);
}

void require_agreement(const std::vector<Device>& devices) {
  const test::Deadline deadline;
  uint64_t replayed = 0;
  const auto tried = test::each_point(10'000, 300, deadline, [&](int64_t n) {
    BOOST_TEST_CONTEXT("function " << n)
    BOOST_TEST(agree(static_cast<uint64_t>(n), devices, replayed));
    return n < 10'000;
  });
  BOOST_TEST(tried > 0);
  // Most calls are those of programs, or this would show nothing.
  BOOST_TEST(replayed > 2 * static_cast<uint64_t>(tried));
}

}  // namespace

BOOST_AUTO_TEST_CASE(give_the_same_bits_as_their_functions) {
  require_agreement({default_device()});
}
BOOST_AUTO_TEST_CASE(give_the_same_bits_on_several_devices) {
  require_agreement({"cpu:0", "cpu:1", "cpu:2"});
}

BOOST_AUTO_TEST_SUITE_END()
