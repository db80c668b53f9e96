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

// Gradients of some results, which may be an error for what was changed in place since.
struct Passed {
  bool failed = false;
  std::vector<Tensor> gradients;
};
Passed pass_backward(Choices c, const std::vector<Tensor>& results,
                     const std::vector<Tensor>& inputs) {
  Tensor loss;
  for (auto& result : results) {
    if (!result.requires_grad() || c.chance(0.2)) continue;
    const Tensor part = result.to(default_device()).clamp(-5.0, 5.0).mean();
    loss = loss.defined() ? loss + part : part;
  }
  Passed passed;
  if (!loss.defined()) return passed;
  std::vector<Tensor> wanted;
  for (auto& input : inputs)
    if (input.requires_grad() && c.chance(0.8)) wanted.push_back(input);
  if (wanted.empty()) return passed;
  try {
    passed.gradients = grad(std::vector{loss}, wanted, {}, {.allow_unused = true});
  } catch (const AutogradError&) {
    passed.failed = true;
  }
  return passed;
}

// The same of a function whose backward passes are outside. Each has arguments of its own.
bool agree_backward(uint64_t seed, const std::vector<Device>& devices, uint64_t& replayed) {
  World plain = make_world(seed, devices), other = make_world(seed, devices);
  auto compiled = compile(
      [&](const Tensor& x, const Tensor& y) { return test::run_forward(seed, other, x, y); });
  Choices c(seed ^ 0x9e3779b97f4a7c15u);
  const bool leaf = c.chance(0.5);
  for (int call = 0; call < 9; ++call) {
    const Tensor x = randn({4, 4}), y = randn({4, 4}).to(devices[seed % devices.size()]);
    const RandomState state = random_state();
    const Choices choices = c;
    const auto run = [&](World& world, const auto& f) {
      set_random_state(state);
      std::vector<Tensor> inputs = world.leaves;
      const Tensor a = leaf ? x.clone().requires_grad_() : x.clone();
      inputs.push_back(a);
      auto results = f(a, y.clone());
      auto passed = pass_backward(choices, results, inputs);
      for (auto& result : results) passed.gradients.push_back(result.detach());
      return passed;
    };
    const auto expected = run(plain, [&](const Tensor& a, const Tensor& b) {
      return test::run_forward(seed, plain, a, b);
    });
    const RandomState after = random_state();
    const auto found = run(other, [&](const Tensor& a, const Tensor& b) { return compiled(a, b); });
    if (expected.failed != found.failed || !(random_state() == after)) return false;
    if (!same_bits(expected.gradients, found.gradients)) return false;
    if (!same_bits(plain.state, other.state)) return false;
    c.below(2);  // the next call chooses otherwise
  }
  const std::string text = compiled.explain();
  if (const auto at = text.find("replayed "); at != text.npos)
    replayed += std::stoull(text.substr(at + 9));
  return true;
}

using Agree = bool (*)(uint64_t, const std::vector<Device>&, uint64_t&);
void require_agreement(const std::vector<Device>& devices, Agree same = agree) {
  const test::Deadline deadline;
  uint64_t replayed = 0;
  const auto tried = test::each_point(10'000, 300, deadline, [&](int64_t n) {
    BOOST_TEST_CONTEXT("function " << n)
    BOOST_TEST(same(static_cast<uint64_t>(n), devices, replayed));
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
BOOST_AUTO_TEST_CASE(give_the_same_gradients_outside) {
  require_agreement({default_device()}, agree_backward);
}
BOOST_AUTO_TEST_CASE(give_the_same_gradients_outside_on_several_devices) {
  require_agreement({"cpu:0", "cpu:1", "cpu:2"}, agree_backward);
}
BOOST_AUTO_TEST_CASE(give_the_same_bits_on_several_devices) {
  require_agreement({"cpu:0", "cpu:1", "cpu:2"});
}

BOOST_AUTO_TEST_SUITE_END()
