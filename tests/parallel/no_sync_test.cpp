// Several passes that share one sum over the devices: DataParallel::no_sync.
#include <cmath>
#include <memory>
#include <optional>
#include <stdexcept>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "parallel/gradients.h"
#include "parallel/trained.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(no_sync_test)

using namespace tenon;
using namespace tenon::test;

namespace {

// Two passes within no_sync and a third one, each with other rows. The second one alone uses the
// layer that the others leave out.
struct Steps : nn::Module<Steps> {
  nn::Linear in{6, 8}, at_times{8, 8}, out{8, 3};
  bool longer = false;
  Tensor forward(const Tensor& x) {
    const Tensor h = tanh(in(x));
    return out(longer ? tanh(at_times(h)) : h);
  }
};

Steps steps() {
  manual_seed(4);
  return Steps();
}

Tensor loss_of(auto& model, Steps& inner, int step) {
  inner.longer = step == 1;
  const Tensor x = sin(arange(0, 42) * (1.0 + step)).reshape({7, 6});
  return square(model(x.to(f64))).sum();
}

Values accumulated_by(Steps model) {
  model.to(f64);
  for (int i = 0; i < 3; ++i) loss_of(model, model, i).backward();
  return grads_of(model.parameters());
}

}  // namespace

BOOST_AUTO_TEST_CASE(no_sync_sums_several_passes_at_once) {
  const auto expected = accumulated_by(steps());
  Values first;
  for (const double cap : {kEach, kNone, kEach}) {
    nn::DataParallel model(steps(), three, {.bucket_cap_mb = cap});
    model.to(f64);
    const auto pass = [&](int i) { loss_of(model, model.module, i).backward(); };
    BOOST_TEST(sums_of([&] {
                 auto guard = model.no_sync();
                 pass(0);
                 pass(1);
               }) == 0u);
    BOOST_TEST((sums_of([&] { pass(2); }) > 0u) == (cap == kEach));
    const auto found = grads_of(model.parameters());
    BOOST_TEST(largest_difference(found, expected) < 1e-10);
    if (first.empty()) first = found;
    BOOST_TEST((found == first));
  }
  for (uint32_t n : {1u, 2u, 4u}) {
    nn::DataParallel inner(steps(), places(2));
    nn::DataParallel model(inner, places(n));  // the outer one decides
    model.to(f64);
    for (int i = 0; i < 3; ++i) {
      std::optional<nn::NoSync> guard;
      if (i < 2) guard.emplace(model.no_sync());
      loss_of(model, model.module.module, i).backward();
    }
    BOOST_TEST(largest_difference(grads_of(model.parameters()), expected) < 1e-10);
  }
}

// Whoever asks for a gradient gets all of it, also before the pass that would have summed it.
BOOST_AUTO_TEST_CASE(what_no_sync_holds_back_comes_when_it_is_needed) {
  const auto expected = accumulated_by(steps());
  const auto held = [](auto&& then) {
    nn::DataParallel model(steps(), three, {.bucket_cap_mb = kEach});
    model.to(f64);
    auto guard = model.no_sync();
    for (int i = 0; i < 3; ++i) loss_of(model, model.module, i).backward();
    then(model);
    return grads_of(model.parameters());
  };
  BOOST_TEST(largest_difference(held([](auto&) {}), expected) < 1e-10);
  BOOST_TEST(largest_difference(held([](auto& model) { model.to(f32), model.to(f64); }), expected) <
             1e-5);
  for (auto& g : held([](auto& model) { model.zero_grad(); })) BOOST_TEST(g.empty());
  for (auto& g : held([](auto& model) { model.zero_grad(false); }))
    BOOST_TEST(g == std::vector<double>(g.size(), 0.0));
  // A pass that fails leaves what it found.
  const auto after_failure = held([](auto& model) {
    model.module.longer = false;
    Tensor x = zeros({7, 6}, f64), loss = square(nn::DataParallel(model.module, three)(x)).sum();
    auto hook = model.module.out.bias.register_hook(
        [](const Tensor&) -> Tensor { throw std::runtime_error("hook"); });
    BOOST_CHECK_THROW(loss.backward(), std::runtime_error);
    hook.remove();
  });
  BOOST_TEST(largest_difference(after_failure, expected) < 1e-10);
}

BOOST_AUTO_TEST_CASE(no_sync_is_of_the_call_as_in_pytorch) {
  nn::DataParallel model(steps(), three, {.bucket_cap_mb = kEach});
  model.to(f64);
  const auto loss = [&](bool syncs) {
    std::optional<nn::NoSync> guard;
    if (!syncs) guard.emplace(model.no_sync());
    const auto nested = syncs ? nullptr : std::make_unique<nn::NoSync>(model.no_sync());
    return loss_of(model, model.module, 0);
  };
  const Tensor within = loss(false);
  BOOST_TEST(sums_of([&] { within.backward(); }) == 0u);
  const Tensor outside = loss(true);
  auto guard = model.no_sync();
  BOOST_TEST(sums_of([&] { outside.backward(); }) > 0u);
  auto copy = model;  // has no guard
  const Tensor of_copy = loss_of(copy, copy.module, 0);
  BOOST_TEST(sums_of([&] { of_copy.backward(); }) > 0u);
  // A hook sees the sum of each pass.
  std::vector<double> seen;
  auto hook = model.module.out.bias.register_hook(
      [&](const Tensor& g) { seen.push_back(g.sum().template item<double>()); });
  model.zero_grad();
  for (int i = 0; i < 2; ++i) loss_of(model, model.module, 0).backward();
  BOOST_TEST_REQUIRE(seen.size() == 2u);
  BOOST_TEST(seen[0] == seen[1]);
  const double all = model.module.out.bias.grad().sum().item<double>();
  BOOST_TEST(std::abs(all - 2 * seen[0]) < 1e-10);
  hook.remove();
}

BOOST_AUTO_TEST_SUITE_END()
