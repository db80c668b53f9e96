// Compiled functions that work on several devices: DataParallel, models in stages, copies and sums
// between devices. The same bits as eager execution, and the same state afterwards.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "bits.h"
#include "parallel/trained.h"
#include "support/drain.h"

BOOST_AUTO_TEST_SUITE(devices_test)

using namespace tenon;
using test::places;
using test::same_bits;
using test::says;

namespace {

using Optimizer = std::unique_ptr<optim::Optimizer>;
using MakeOptimizer = std::function<Optimizer(std::vector<Tensor>)>;

template <class O, class Options>
MakeOptimizer making(Options options) {
  return [options](std::vector<Tensor> params) { return std::make_unique<O>(params, options); };
}
const MakeOptimizer sgd = making<optim::SGD>(optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
const MakeOptimizer adam = making<optim::Adam>(optim::AdamOptions{.lr = 0.01});

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
  Tensor step(const Tensor& x, const Tensor& y) {
    optimizer->zero_grad();
    Tensor loss = cross_entropy(net(x), y);
    loss.backward();
    optimizer->step();
    return loss;
  }
};

void require_alike(const std::vector<Tensor>& p, const std::vector<Tensor>& q) {
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
bool same_twice(const F& f, const G& g) {
  const RandomState state = random_state();
  const auto expected = f();
  const RandomState after = random_state();
  set_random_state(state);
  return same_bits(g(), expected) && random_state() == after;
}

Tensor inputs(int64_t n) { return randn({n, 6}); }
Tensor targets(int64_t n) { return randint(0, 3, {n}); }

// Both make the same steps, one of them compiled; now and then both are called as they are.
void compare(uint32_t devices, const MakeOptimizer& make, int64_t batch,
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

std::string error_of(const std::function<void()>& call) try {
  call();
  return "";
} catch (const Error& error) {
  return error.what();
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_shared_model_learns_the_same) {
  for (uint32_t devices : {2u, 3u})
    for (auto& make : {sgd, adam}) BOOST_TEST_CONTEXT(devices << " devices") {
        compare(devices, make, 12);
      }
}

BOOST_AUTO_TEST_CASE(with_parts_of_different_sizes) {
  compare(2, sgd, 7);
  compare(3, adam, 13, {.weights = {3, 2, 2}});
}

BOOST_AUTO_TEST_CASE(with_small_buckets) {
  compare(2, sgd, 8, {.bucket_cap_mb = 1e-5});
  compare(3, sgd, 8, {.bucket_cap_mb = 1e-4});
}

BOOST_AUTO_TEST_CASE(a_shared_model_is_evaluated) {
  Run a(2, sgd), b(2, sgd);
  a.net.eval(), b.net.eval();
  auto compiled = compile([&](const Tensor& x) { return b.net(x); });
  NoGrad guard;
  for (int i = 0; i < 8; ++i) {
    const Tensor x = inputs(6);
    BOOST_TEST(same_bits(a.net(x), compiled(x)));
    if (i % 3 != 2) continue;
    // The replicas are refreshed by whoever comes next.
    for (auto* run : {&a, &b})
      for (auto& p : run->net.parameters()) p.mul_(0.9);
  }
  BOOST_TEST(says(compiled, "replayed"));
  require_alike(a.net, b.net);
}

// Training and evaluation, each with its program, take turns: a replica is as new as it has to be.
BOOST_AUTO_TEST_CASE(programs_take_turns) {
  Run a(2, adam), b(2, adam);
  auto step = compile([&](const Tensor& x, const Tensor& y) { return b.step(x, y); });
  auto score = compile([&](const Tensor& x) { return b.net(x).argmax(1); });
  for (int i = 0; i < 10; ++i) {
    const Tensor x = inputs(6), y = targets(6);
    BOOST_TEST(same_twice([&] { return a.step(x, y); }, [&] { return step(x, y); }));
    NoGrad guard;
    a.net.eval(), b.net.eval();
    for (int k = 0; k < 3; ++k) BOOST_TEST(same_bits(a.net(x).argmax(1), score(x)));
    a.net.train(), b.net.train();
  }
  require_alike(a.net, b.net);
}

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

BOOST_AUTO_TEST_CASE(replicas_with_an_optimizer_each) {
  const auto devices = places(3);
  struct Copies {
    std::vector<Net> nets;
    std::vector<Optimizer> optimizers;
    explicit Copies(const std::vector<Device>& devices)
        : nets(nn::parallel::replicate(Run::seeded(), devices)) {
      for (auto& each : nets) optimizers.push_back(sgd(each.parameters()));
    }
    Tensor step(const Tensor& x, const Tensor& y, const std::vector<Device>& devices) {
      for (auto& optimizer : optimizers) optimizer->zero_grad();
      auto parts = nn::parallel::split_and_load(x, y, devices);
      std::vector<Tensor> losses;
      for (size_t i = 0; i < parts.size(); ++i) {
        losses.push_back(cross_entropy(nets[i](parts[i].first), parts[i].second));
        losses.back().backward();
      }
      nn::parallel::all_reduce_gradients_(nets);
      for (auto& optimizer : optimizers) optimizer->step();
      for (auto& loss : losses) loss = loss.detach();
      return nn::parallel::reduce_add(losses, devices[0]);
    }
  };
  Copies a(devices), b(devices);
  auto compiled = compile([&](const Tensor& x, const Tensor& y) { return b.step(x, y, devices); });
  for (int i = 0; i < 10; ++i) {
    const Tensor x = inputs(9), y = targets(9);
    BOOST_TEST(same_twice([&] { return a.step(x, y, devices); }, [&] { return compiled(x, y); }));
  }
  for (size_t i = 0; i < devices.size(); ++i) require_alike(a.nets[i], b.nets[i]);
  BOOST_TEST(says(compiled, "replayed"));
}

BOOST_AUTO_TEST_CASE(accumulation_without_sums_between) {
  Run a(2, adam), b(2, adam);
  auto pass = [](Run& run, const Tensor& x, const Tensor& y, bool last) {
    std::optional<nn::NoSync> guard;
    if (!last) guard.emplace(run.net.no_sync());
    Tensor loss = cross_entropy(run.net(x), y);
    loss.backward();
    return loss;
  };
  auto compiled = compile([&](const Tensor& x, const Tensor& y) { return pass(b, x, y, true); });
  for (int i = 0; i < 12; ++i) {
    const Tensor x = inputs(6), y = targets(6);
    const bool last = i % 2 == 1;
    BOOST_TEST(same_twice([&] { return pass(a, x, y, last); },
                          [&] { return last ? compiled(x, y) : pass(b, x, y, false); }));
    if (last)
      for (auto* run : {&a, &b}) run->optimizer->step(), run->optimizer->zero_grad();
  }
  require_alike(a.net, b.net);
  BOOST_TEST(says(compiled, "no_sync"));
}

// A call under the guard leaves gradients where they are, which a program could not.
BOOST_AUTO_TEST_CASE(a_guard_around_a_compiled_step_is_noticed) {
  Run a(2, sgd), b(2, sgd);
  auto pass = [](Run& run, const Tensor& x, const Tensor& y) {
    run.optimizer->zero_grad();
    Tensor loss = cross_entropy(run.net(x), y);
    loss.backward();
    return loss;
  };
  auto compiled = compile([&](const Tensor& x, const Tensor& y) { return pass(b, x, y); });
  for (int i = 0; i < 12; ++i) {
    const Tensor x = inputs(6), y = targets(6);
    std::optional<nn::NoSync> guard_a, guard_b;
    if (i == 8) guard_a.emplace(a.net.no_sync()), guard_b.emplace(b.net.no_sync());
    BOOST_TEST(same_twice([&] { return pass(a, x, y); }, [&] { return compiled(x, y); }));
    if (i == 8) {
      guard_a.reset(), guard_b.reset();
      pass(a, x, y), pass(b, x, y);
    }
  }
  require_alike(a.net, b.net);
}

BOOST_AUTO_TEST_CASE(a_model_that_moved_gets_another_program) {
  const auto devices = places(2);
  manual_seed(4);
  nn::Linear a{6, 3};
  nn::Linear b = nn::clone(a);
  auto compiled =
      compile([&](const Tensor& x) { return b(x.to(b.weight.device())).to(x.device()); });
  NoGrad guard;
  for (int i = 0; i < 15; ++i) {
    if (i == 5) a.to(devices[1]), b.to(devices[1]);
    if (i == 10) a.to(devices[0]), b.to(devices[0]);
    const Tensor x = randn({4, 6}, {.device = devices[0]});
    BOOST_TEST(same_bits(a(x.to(a.weight.device())), compiled(x)));
  }
  BOOST_TEST(says(compiled, "3 programs made"));
}

BOOST_AUTO_TEST_CASE(a_shared_model_that_moved_is_an_error_as_always) {
  const auto devices = places(2);
  Run b(2, sgd);
  auto compiled = compile([&](const Tensor& x, const Tensor& y) { return b.step(x, y); });
  for (int i = 0; i < 5; ++i) compiled(inputs(6), targets(6));
  b.net.module.to(devices[1]);
  const Tensor x = inputs(6), y = targets(6);
  const auto expected = error_of([&] { b.step(x, y); });
  BOOST_TEST(expected.find("the model has to be on the first of its devices") != expected.npos);
  BOOST_TEST(error_of([&] { compiled(x, y); }) == expected);
  b.net.module.to(devices[0]);
  for (int i = 0; i < 4; ++i) compiled(inputs(6), targets(6)).wait();
}

BOOST_AUTO_TEST_CASE(a_checkpoint_between_goes_on_as_always) {
  Run a(2, adam), b(2, adam);
  auto compiled = compile([&](const Tensor& x, const Tensor& y) { return b.step(x, y); });
  auto both = [&] {
    const Tensor x = inputs(8), y = targets(8);
    BOOST_TEST(same_twice([&] { return a.step(x, y); }, [&] { return compiled(x, y); }));
  };
  for (int i = 0; i < 6; ++i) both();
  nn::StateDict saved;
  for (auto& [name, t] : nn::state_dict(b.net)) saved.set(name, t.clone());
  for (int i = 0; i < 4; ++i) both();
  load_state_dict(a.net, saved), load_state_dict(b.net, saved);
  for (int i = 0; i < 6; ++i) both();
  require_alike(a.net, b.net);
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
