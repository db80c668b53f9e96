// Compiled functions that copy between devices: models in stages, values of the host, failures.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "shared_runs.h"
#include "support/drain.h"

BOOST_AUTO_TEST_SUITE(device_copies_test)

using namespace tenon;
using namespace test::shared_runs;
using test::places;
using test::same_bits;
using test::says;

namespace {

// The layers are on different devices.
struct Stages : nn::Module<Stages> {
  static constexpr int num_fields = 3;
  nn::Linear first{6, 8}, second{8, 3};
  std::vector<Device> devices;
  explicit Stages(std::vector<Device> places) : devices(std::move(places)) {
    first.to(devices.front());
    second.to(devices.back());
  }
  Tensor forward(const Tensor& x) {
    return second(dropout(relu(first(x.to(devices.front()))), 0.2).to(devices.back()));
  }
};

struct StagesRun {
  Stages net;
  Optimizer optimizer;
  StagesRun(uint32_t devices, const MakeOptimizer& make)
      : net(seeded(devices)), optimizer(make(net.parameters())) {}
  static Stages seeded(uint32_t devices) {
    manual_seed(3);
    return Stages(places(devices));
  }
  // The mean loss over parts of the batch, which follow each other through the stages.
  Tensor step(const Tensor& x, const Tensor& y, int64_t parts) {
    optimizer->zero_grad();
    Tensor total;
    const int64_t rows = x.size(0) / parts;
    for (int64_t i = 0; i < parts; ++i) {
      const Tensor scores = net(x.narrow(0, i * rows, rows));
      const Tensor loss = cross_entropy(scores, y.narrow(0, i * rows, rows).to(scores.device()));
      total = total.defined() ? total + loss : loss;
    }
    (total / static_cast<double>(parts)).backward();
    optimizer->step();
    return total.detach().to(x.device());
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_model_in_stages_learns_the_same) {
  for (uint32_t devices : {2u, 3u})
    for (int64_t parts : {1, 3}) {
      StagesRun a(devices, adam), b(devices, adam);
      auto compiled =
          compile([&](const Tensor& x, const Tensor& y) { return b.step(x, y, parts); });
      for (int i = 0; i < 10; ++i) {
        const Tensor x = inputs(6), y = targets(6);
        BOOST_TEST(same_twice([&] { return a.step(x, y, parts); }, [&] { return compiled(x, y); }));
        if (i == 5)
          BOOST_TEST(
              same_twice([&] { return a.step(x, y, parts); }, [&] { return b.step(x, y, parts); }));
      }
      require_alike(a.net, b.net);
      BOOST_TEST(says(compiled, "replayed"));
    }
}

// What is large is copied by a stream of its own.
BOOST_AUTO_TEST_CASE(copies_of_all_sizes_and_layouts) {
  const auto devices = places(2);
  const Device here = devices[0], there = devices[1];
  auto plain = [&](const Tensor& x, Tensor target) {
    const Tensor moved = (x * 2.0).to(there);
    target.copy_(x.sum({0}).to(there));               // something from outside, there
    const Tensor turned = x.t().to(there) + 1.0;      // another order in memory
    const Tensor some = x.narrow(0, 1, 2).to(there);  // a part of an argument
    const Tensor nothing = x.narrow(0, 0, 0).to(there);
    Tensor back = (moved.t() * turned).to(here);
    back.mul_(0.5);
    return std::vector<Tensor>{back, turned, some, nothing, moved};
  };
  for (const int64_t n : {4, 300}) {
    Tensor a = zeros({n}, {.device = there}), b = zeros({n}, {.device = there});
    auto compiled = compile(plain);
    for (int i = 0; i < 8; ++i) {
      const Tensor x = randn({n, n}, {.device = here});
      const auto expected = plain(x, a);
      const auto found = compiled(x, b);
      BOOST_TEST(same_bits(expected, found));
      BOOST_TEST(same_bits(a, b));
      BOOST_TEST(a.version() == b.version());
      for (size_t k = 0; k < found.size(); ++k) {
        BOOST_TEST(found[k].device() == expected[k].device());
        BOOST_TEST(found[k].version() == expected[k].version());
        BOOST_TEST((found[k].strides() == expected[k].strides()));
      }
    }
    BOOST_TEST(says(compiled, "replayed"));
  }
}

BOOST_AUTO_TEST_CASE(results_of_one_call_stay_as_they_are) {
  const auto devices = places(2);
  auto compiled = compile([&](const Tensor& x) { return (x + 1.0).to(devices[1]) * 2.0; });
  std::vector<Tensor> found, expected;
  for (int i = 0; i < 12; ++i) {
    const Tensor x = randn({200, 200}, {.device = devices[0]});
    found.push_back(compiled(x));
    expected.push_back((x + 1.0).to(devices[1]) * 2.0);
  }
  BOOST_TEST(same_bits(expected, found));
  BOOST_TEST(says(compiled, "replayed 10 times"));
}

BOOST_AUTO_TEST_CASE(values_of_the_host_are_constants) {
  const auto devices = places(2);
  const Tensor w = randn({3});
  auto plain = [&](const Tensor& x) {
    Tensor scale = tensor({1.0f, 2.0f, 3.0f});
    scale.mul_(2.0);  // each call has its own
    return std::vector<Tensor>{x * scale + w, scale, tensor({0.5f}, {.device = devices[1]}) + 1.0};
  };
  auto compiled = compile(plain);
  std::vector<Tensor> found, expected;
  for (int i = 0; i < 8; ++i) {
    const Tensor x = randn({4, 3});
    for (auto& t : plain(x)) expected.push_back(t);
    for (auto& t : compiled(x)) found.push_back(t);
  }
  BOOST_TEST(same_bits(expected, found));
  BOOST_TEST(says(compiled, "replayed 6 times"));
}

BOOST_AUTO_TEST_CASE(values_of_the_host_that_differ_make_no_program) {
  float count = 0;
  auto plain = [&](const Tensor& x) { return x + tensor({count}); };
  auto compiled = compile(plain);
  for (int i = 0; i < 8; ++i, ++count) {
    const Tensor x = randn({4});
    BOOST_TEST(same_bits(plain(x), compiled(x)));
  }
  BOOST_TEST(says(compiled, "a tensor that is made of values of the host had other values"));
}

BOOST_AUTO_TEST_CASE(what_fails_on_one_device_spoils_what_depends_on_it) {
  if (default_device() != Device()) return;  // others cannot say which values a failure affected
  const auto devices = places(2);
  Run a(2, adam), b(2, adam);
  auto compiled = compile([&](const Tensor& x, const Tensor& y) { return b.step(x, y); });
  auto lookup = [&](const Tensor& table, const Tensor& index) {
    const Tensor rows = table.to(devices[1]).index_select(0, index.to(devices[1]));
    return std::vector<Tensor>{table * 2.0, rows.to(devices[0]) + 1.0};
  };
  auto compiled_lookup = compile(lookup);
  for (int i = 0; i < 9; ++i) {
    const Tensor table = randn({5, 2});
    const Tensor index = i == 5 ? full({3}, 9, {.dtype = i64}) : randint(0, 5, {3});
    const auto expected = lookup(table, index), found = compiled_lookup(table, index);
    BOOST_TEST(same_bits(expected[0], found[0]));
    const auto text = error_of([&] { expected[1].to_vector<float>(); });
    BOOST_TEST(text == error_of([&] { found[1].to_vector<float>(); }));
    BOOST_TEST(text.empty() == (i != 5));
    if (text.empty()) BOOST_TEST(same_bits(expected[1], found[1]));
  }
  BOOST_TEST(says(compiled_lookup, "replayed"));
  for (int i = 0; i < 9; ++i) {
    const Tensor x = inputs(6), y = i == 5 ? full({6}, 7, {.dtype = i64}) : targets(6);
    const RandomState state = random_state();
    const Tensor expected = a.step(x, y);
    set_random_state(state);
    const Tensor found = compiled(x, y);
    BOOST_TEST(error_of([&] { expected.item(); }) == error_of([&] { found.item(); }));
    BOOST_TEST(same_bits(a.net.parameters(), b.net.parameters()));
  }
  test::drain();
}

BOOST_AUTO_TEST_CASE(reasons_for_no_program) {
  const auto devices = places(2);
  {
    nn::DataParallel net(Run::seeded(), devices, {.balance = true});
    net.eval();  // a share may be one row, which has no statistics
    auto compiled = compile([&](const Tensor& x) { return net(x).detach(); });
    for (int i = 0; i < 4; ++i) compiled(inputs(4));
    BOOST_TEST(says(compiled, "DataParallel finds the shares of its devices"));
  }
  {
    nn::DataParallel net(nn::Sequential(nn::Linear(6, 4), nn::SyncBatchNorm(4)), devices);
    auto compiled = compile([&](const Tensor& x) { return net(x).detach(); });
    for (int i = 0; i < 4; ++i) compiled(inputs(4));
    BOOST_TEST(says(compiled, "a module runs in several threads"));
  }
}

BOOST_AUTO_TEST_SUITE_END()
