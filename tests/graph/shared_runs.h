// A model on several devices that learns, compiled and as always, for the tests of programs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "bits.h"
#include "parallel/trained.h"
#include "saved_nets.h"
#include "support/expect.h"

namespace tenon::test::shared_runs {

using saved::MakeOptimizer;
using saved::Optimizer;

template <class O, class Options>
MakeOptimizer making(Options options) {
  return [options](std::vector<Tensor> params) { return std::make_unique<O>(params, options); };
}
inline const MakeOptimizer sgd = making<optim::SGD>(optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
inline const MakeOptimizer adam = making<optim::Adam>(optim::AdamOptions{.lr = 0.01});

struct Net : nn::Module<Net> {
  nn::Linear fc1{6, 8}, fc2{8, 3};
  nn::BatchNorm1d norm{8};
  nn::Dropout drop{0.3};
  Tensor forward(const Tensor& x) { return fc2(drop(relu(norm(fc1(x))))); }
};

using Shared = nn::DataParallel<Net>;

// A model on several devices with its optimizer.
struct Run {
  Shared net;
  Optimizer optimizer;
  Run(uint32_t devices, const MakeOptimizer& make, nn::DataParallelOptions options = {})
      : net(seeded(), places(devices), options), optimizer(make(net.parameters())) {}

  static Net seeded() {
    manual_seed(11);
    return Net();
  }
  Tensor step(const Tensor& x, const Tensor& y) { return saved::train_step(net, *optimizer, x, y); }
};

inline void require_alike(const std::vector<Tensor>& p, const std::vector<Tensor>& q) {
  BOOST_REQUIRE(p.size() == q.size());
  for (size_t i = 0; i < p.size(); ++i) {
    BOOST_TEST(same_bits(p[i], q[i]));
    BOOST_TEST(same_bits(p[i].grad(), q[i].grad()));
    BOOST_TEST(p[i].version() == q[i].version());
    if (p[i].grad().defined()) BOOST_TEST(p[i].grad().version() == q[i].grad().version());
  }
}
template <class M>
void require_alike(M& a, M& b) {
  require_alike(a.parameters(), b.parameters());
  BOOST_TEST(same_bits(nn::buffers(a), nn::buffers(b)));
}

// Calls f and g, which draw the same random numbers. Returns whether both give the same bits and
// leave the generator alike.
template <class F, class G>
inline bool same_twice(const F& f, const G& g) {
  const RandomState state = random_state();
  const auto expected = f();
  const RandomState after = random_state();
  set_random_state(state);
  return same_bits(g(), expected) && random_state() == after;
}

inline Tensor inputs(int64_t n) { return randn({n, 6}); }
inline Tensor targets(int64_t n) { return randint(0, 3, {n}); }

// Both make the same steps, one of them compiled; now and then both are called as they are.
inline void compare(uint32_t devices, const MakeOptimizer& make, int64_t batch,
                    nn::DataParallelOptions options = {}, int steps = 12) {
  Run a(devices, make, options), b(devices, make, options);
  auto compiled = compile([&](const Tensor& x, const Tensor& y) { return b.step(x, y); });
  for (int i = 0; i < steps; ++i) {
    const Tensor x = inputs(batch), y = targets(batch);
    BOOST_TEST(same_twice([&] { return a.step(x, y); }, [&] { return compiled(x, y); }));
    if (i % 4 == 2)
      BOOST_TEST(same_twice([&] { return a.step(x, y); }, [&] { return b.step(x, y); }));
    if (i % 5 == 3) {  // without a gradient, so with replicas that nobody changes
      NoGrad guard;
      a.net.eval(), b.net.eval();
      BOOST_TEST(same_bits(a.net(x), b.net(x)));
      a.net.train(), b.net.train();
    }
    if (i % 6 == 5) require_alike(a.net, b.net);
  }
  require_alike(a.net, b.net);
  BOOST_TEST(says(compiled, "replayed"));
  BOOST_TEST(!says(compiled, "no program"));
}

using tenon::test::error_of;

}  // namespace tenon::test::shared_runs
