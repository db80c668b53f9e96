// Random functions of operators, views, changes in place and gradients: the compiled form gives the
// same bits as the function, in results, in what it changed, and in what stayed. On one device and
// on several.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "bits.h"
#include "fuzz.h"

BOOST_AUTO_TEST_SUITE(random_programs_test)

using namespace tenon;
using test::same_bits;

namespace {

// The choices of one function, which are the same in each of its runs.
class Choices {
 public:
  explicit Choices(uint64_t seed) : bits_(seed) {}
  size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(bits_); }
  bool chance(double p) { return std::uniform_real_distribution<>(0, 1)(bits_) < p; }

 private:
  std::mt19937_64 bits_;
};

// What a function sees besides its arguments.
struct World {
  std::vector<Tensor> state;   // it may change these in place
  std::vector<Tensor> leaves;  // of gradients
  std::vector<Device> devices = {default_device()};
};

// Tensors of 4 x 4, so that everything fits together.
Tensor one_step(Choices& c, std::vector<Tensor>& pool, World& world) {
  const auto any = [&] { return pool[c.below(pool.size())]; };
  const Tensor a = any(), b = any().to(a.device());
  switch (c.below(24)) {
    case 0:
      return a + b;
    case 1:
      return a - b * 0.5;
    case 2:
      return a * b;
    case 3:
      return relu(a);
    case 4:
      return sigmoid(a) * tanh(b);
    case 5:
      return matmul(a, b);
    case 6:
      return a.t();
    case 7:
      return softmax(a, 1);
    case 8:
      return (a - a.mean({1}, true)) / (a.std({0}, 1, true) + 1.0);
    case 9:
      return cat({a.narrow(0, 1, 2), b.narrow(0, 0, 2)}, 0);
    case 10:
      return where(a > b, a, b * 0.1);
    case 11:
      return a.reshape({2, 8}).sum({1}, true).expand({2, 8}).reshape({4, 4});
    case 12:
      return dropout(a, 0.4);
    case 13:
      return a.flip({0}) + rand({4, 4}).to(a.device());
    case 14:
      return a[static_cast<int64_t>(c.below(4))].expand({4, 4});
    case 15:
      return gelu(layer_norm(a, {4}));
    case 16:
      return a.detach().clone().clamp(-1.0, 1.0);
    case 17: {  // a part of something new is changed
      Tensor copy = a.detach().clone();
      copy.narrow(static_cast<int64_t>(c.below(2)), 1, 2).mul_(0.5);
      copy[0].copy_(b.detach()[1]);
      return copy;
    }
    case 18: {  // something from outside is changed
      Tensor target = world.state[c.below(world.state.size())];
      const Tensor there = a.detach().clamp(-1.0, 1.0).to(target.device());
      c.chance(0.5) ? target.mul_(0.9) : target.copy_(target * 0.5 + there);
      return target + b.to(target.device());
    }
    case 19: {
      Tensor target = world.state[c.below(world.state.size())];
      const Tensor there = b.detach().clamp(-1.0, 1.0)[2].to(target.device());
      target[static_cast<int64_t>(c.below(4))].add_(there);
      return target.select(1, 2).clone().expand({4, 4}) * a.to(target.device());
    }
    case 20:
      return world.leaves[c.below(world.leaves.size())].to(a.device()) * a;
    case 21:  // a part, in another order
      return a.t().to(world.devices[c.below(world.devices.size())]);
    case 22: {  // something from outside gets values from elsewhere
      Tensor target = world.state[c.below(world.state.size())];
      target.copy_(a.detach().clamp(-1.0, 1.0));
      return target * 0.5;
    }
    default:
      return a.cumsum(0) * 0.25 + b.argmax(1).to(f32).unsqueeze(1);
  }
}

std::vector<Tensor> run(uint64_t seed, World& world, const Tensor& x, const Tensor& y) {
  Choices c(seed);
  std::vector<Tensor> pool = {x, y, world.state[0].clone(), world.leaves[0]};
  const size_t steps = 2 + c.below(14);
  for (size_t i = 0; i < steps; ++i) pool.push_back(one_step(c, pool, world));
  const bool learns = c.chance(0.6);
  std::vector<Tensor> results;
  if (learns) {
    if (c.chance(0.7))
      for (auto& leaf : world.leaves) leaf.set_grad(Tensor());
    Tensor loss = pool.back().clamp(-5.0, 5.0).mean();
    if (!loss.requires_grad()) loss = loss + world.leaves[0].sum().to(loss.device());
    loss.backward();
    if (c.chance(0.5))
      no_grad([&] {
        for (auto& leaf : world.leaves)
          if (leaf.grad().defined()) leaf.sub_(leaf.grad() * 0.1);
      });
    results.push_back(loss.detach());
  }
  const size_t count = c.below(3);
  for (size_t i = 0; i < count; ++i) results.push_back(pool[c.below(pool.size())].detach());
  if (c.chance(0.3)) results.push_back(y);
  return results;
}

World make_world(uint64_t seed, const std::vector<Device>& devices) {
  manual_seed(seed);
  World world;
  world.devices = devices;
  for (auto& device : {devices.front(), devices.back()}) {
    world.state.push_back(randn({4, 4}).to(device));
    world.leaves.push_back(randn({4, 4}).to(device).requires_grad_());
  }
  return world;
}

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
  auto compiled = compile([&](const Tensor& x, const Tensor& y) { return run(seed, other, x, y); });
  Choices c(seed ^ 0x9e3779b97f4a7c15u);
  const Tensor data_x = randn({16, 4}), data_y = data_x.to(devices[seed % devices.size()]);
  Tensor x = randn({4, 4}), y = data_y.narrow(0, 3, 4);
  std::vector<Tensor> kept, expected_kept;
  for (int call = 0; call < 9; ++call) {
    x = argument(c, data_x, x);
    y = argument(c, data_y, c.chance(0.2) && x.device() == y.device() ? x : y);
    const RandomState state = random_state();
    const auto expected = run(seed, plain, x, y);
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

}  // namespace

namespace {
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
