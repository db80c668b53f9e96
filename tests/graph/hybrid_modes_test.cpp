// Compiled modules while modes, shapes, dtypes, devices and what requires a gradient change: at
// each moment the same bits as the module itself.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "../files.h"
#include "shared_runs.h"

BOOST_AUTO_TEST_SUITE(hybrid_modes_test)

using namespace tenon;
using namespace test::shared_runs;
using test::places;
using test::same_bits;
using test::says;

namespace {

nn::Sequential normalized_model() {
  manual_seed(17);
  return nn::Sequential(nn::Linear(6, 8), nn::BatchNorm1d(8), nn::ReLU(), nn::Dropout(0.3),
                        nn::Linear(8, 3));
}

// A module as it is and its twin, of which a compiled form is called.
template <class Net>
struct Twins {
  Net plain, twin;
  CompiledModule<Net> fast;
  Optimizer of_plain, of_twin;
  Twins(const std::function<Net()>& make, const MakeOptimizer& optimizer)
      : plain(make()),
        twin(make()),
        fast(compile(twin)),
        of_plain(optimizer(plain.parameters())),
        of_twin(optimizer(twin.parameters())) {}

  void each(const std::function<void(Net&)>& change) { change(plain), change(twin); }

  // Both steps draw the same numbers and leave the same state.
  void step(const Tensor& x, const Tensor& y) {
    const auto run = [&](auto& model, optim::Optimizer& optimizer) {
      optimizer.zero_grad();
      Tensor loss = cross_entropy(model(x), y);
      loss.backward();
      optimizer.step();
      return loss;
    };
    BOOST_TEST(
        same_twice([&] { return run(plain, *of_plain); }, [&] { return run(fast, *of_twin); }));
    require_alike(plain, twin);
  }

  // A forward pass, and a backward pass if anything requires one.
  void pass(const Tensor& x) {
    const auto run = [&](auto& model, Net& net) {
      for (auto& p : net.parameters()) p.set_grad({});
      Tensor input = x.detach();
      if (x.requires_grad()) input.requires_grad_();
      const Tensor out = model(input);
      if (out.requires_grad()) (out * out).sum().backward();
      return std::vector{out.detach(), input.grad()};
    };
    BOOST_TEST(same_twice([&] { return run(plain, plain); }, [&] { return run(fast, twin); }));
    require_alike(plain, twin);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(normalization_and_dropout_in_training_and_evaluation) {
  for (auto& optimizer : {sgd, adam}) {
    Twins<nn::Sequential> nets(normalized_model, optimizer);
    for (int epoch = 0; epoch < 3; ++epoch) {
      nets.each([](nn::Sequential& net) { net.train(); });
      for (int i = 0; i < 5; ++i) nets.step(inputs(7), targets(7));
      nets.each([](nn::Sequential& net) { net.eval(); });
      for (int i = 0; i < 4; ++i) nets.pass(inputs(7));
      NoGrad guard;
      for (int i = 0; i < 4; ++i) nets.pass(inputs(7));
    }
    // One for training, one for evaluation with gradients and one without.
    BOOST_TEST(says(nets.fast, "3 programs made"));
    BOOST_TEST(says(nets.fast, "under NoGrad"));
  }
}

BOOST_AUTO_TEST_CASE(under_no_grad_results_have_no_history) {
  Twins<nn::Sequential> nets(normalized_model, sgd);
  auto function = compile([&](const Tensor& x) { return no_grad([&] { return nets.twin(x); }); });
  for (const bool training : {false, true}) {
    nets.each([&](nn::Sequential& net) { net.train(training); });
    for (int i = 0; i < 6; ++i) {
      const Tensor x = inputs(5);
      NoGrad guard;
      BOOST_TEST(same_twice([&] { return nets.plain(x); }, [&] { return nets.fast(x); }));
      BOOST_TEST(!nets.fast(x).requires_grad());
      nets.plain(x);
    }
    // The guard inside the function.
    for (int i = 0; i < 6; ++i) {
      const Tensor x = inputs(5);
      const auto plain = [&] { return no_grad([&] { return nets.plain(x); }); };
      BOOST_TEST(same_twice(plain, [&] { return function(x); }));
    }
    require_alike(nets.plain, nets.twin);
  }
  BOOST_TEST(says(nets.fast, "2 programs made"));
  BOOST_TEST(says(function, "2 programs made"));
  BOOST_TEST(!says(nets.fast, "a history"));
}

BOOST_AUTO_TEST_CASE(whatever_changes_between_calls) {
  Twins<nn::Sequential> nets(normalized_model, sgd);
  const std::vector<std::function<void(nn::Sequential&, bool)>> changes{
      [](nn::Sequential& net, bool on) { net.train(!on); },
      [](nn::Sequential& net, bool on) { net.to(on ? f64 : f32); },
      [](nn::Sequential& net, bool on) { net.parameters()[0].requires_grad_(!on); },
      [](nn::Sequential& net, bool on) {
        for (auto& p : net.parameters()) p.requires_grad_(!on);
      },
      [](nn::Sequential& net, bool) {
        NoGrad guard;
        for (auto& p : net.parameters()) p.mul_(0.9);
      }};
  std::vector<bool> on(changes.size());
  const int64_t rows[] = {4, 4, 9};
  for (size_t round = 0; round < 30; ++round) {
    const size_t which = (round * 7 + round / 5) % changes.size();
    on[which] = !on[which];
    nets.each([&](nn::Sequential& net) { changes[which](net, on[which]); });
    const DType dtype = nets.plain.parameters()[0].dtype();
    for (int i = 0; i < 4; ++i) {
      Tensor x = inputs(rows[(round + static_cast<size_t>(i) / 3) % 3]).to(dtype);
      if (round % 3 == 1) x.requires_grad_();
      nets.pass(x);
    }
  }
  BOOST_TEST(says(nets.fast, "replayed"));
}

BOOST_AUTO_TEST_CASE(another_dtype_or_layout_of_the_argument) {
  const Tensor w = randn({6}).requires_grad_();
  const auto plain = [&](const Tensor& x) { return (x * w).relu().sum({1}); };
  auto fast = compile(plain);
  const std::vector<std::function<Tensor()>> arguments{[] {
                                                         return randn({4, 6});
                                                       },
                                                       [] {
                                                         return randn({4, 6}, {.dtype = f64});
                                                       },
                                                       [] {
                                                         return randn({6, 4}).t();
                                                       },
                                                       [] {
                                                         return randn({4, 6}).requires_grad_();
                                                       }};
  for (int round = 0; round < 3; ++round)
    for (auto& argument : arguments)
      for (int i = 0; i < 4; ++i) {
        const Tensor x = argument();
        const Tensor expected = plain(x), found = fast(x);
        BOOST_TEST(same_bits(found, expected));
        BOOST_TEST((found.dtype() == expected.dtype()));
        BOOST_TEST(same_bits(grad(found.sum(), w), grad(expected.sum(), w)));
      }
  BOOST_TEST(says(fast, "4 programs made"));
}

// The whole step is compiled, with its backward pass; modes and sizes change meanwhile.
BOOST_AUTO_TEST_CASE(a_step_of_a_shared_sequential) {
  using Shared = nn::DataParallel<nn::Sequential>;
  struct Side {
    Shared net{normalized_model(), places(2)};
    Optimizer optimizer = adam(net.parameters());
    Tensor step(const Tensor& x, const Tensor& y) {
      optimizer->zero_grad();
      Tensor loss = cross_entropy(net(x), y);
      loss.backward();
      optimizer->step();
      return loss.detach();
    }
  };
  Side a, b;
  auto compiled = compile([&](const Tensor& x, const Tensor& y) { return b.step(x, y); });
  for (int i = 0; i < 24; ++i) {
    for (auto* side : {&a, &b}) {
      side->net.train(i / 6 % 2 == 0);
      side->net.parameters()[0].requires_grad_(i / 8 % 2 == 0);
    }
    const int64_t rows = i % 4 == 3 ? 5 : 8;
    const Tensor x = inputs(rows), y = targets(rows);
    BOOST_TEST(same_twice([&] { return a.step(x, y); }, [&] { return compiled(x, y); }));
    require_alike(a.net, b.net);
  }
  BOOST_TEST(says(compiled, "replayed"));
}

BOOST_AUTO_TEST_CASE(a_shared_module_has_programs_without_gradients_alone) {
  using Shared = nn::DataParallel<nn::Sequential>;
  Twins<Shared> nets([] { return Shared(normalized_model(), places(2)); }, sgd);
  for (int i = 0; i < 5; ++i) nets.step(inputs(6), targets(6));
  BOOST_TEST(says(nets.fast, "the gradient of a parameter with replicas (DataParallel)"));
  BOOST_TEST(says(nets.fast, "0 programs made"));
  NoGrad guard;
  nets.each([](Shared& net) { net.eval(); });
  for (int i = 0; i < 5; ++i) nets.pass(inputs(6));
  BOOST_TEST(says(nets.fast, "1 programs made"));
}

// The backward pass goes back over the devices.
BOOST_AUTO_TEST_CASE(a_module_in_stages_on_two_devices) {
  struct Stages : nn::Module<Stages> {
    nn::Linear first{6, 8}, second{8, 3};
    Tensor forward(const Tensor& x) {
      const Tensor h = relu(first(x));
      return second(dropout(h.to(second.weight.device()), 0.2)).to(x.device());
    }
  };
  Twins<Stages> nets(
      [] {
        manual_seed(5);
        Stages net;
        net.first.to(places(2)[0]);
        net.second.to(places(2)[1]);
        return net;
      },
      adam);
  for (int i = 0; i < 10; ++i) nets.step(inputs(6).to(places(2)[0]), targets(6).to(places(2)[0]));
  BOOST_TEST(says(nets.fast, "replayed 8 times"));
  BOOST_TEST(says(nets.fast, "its backward pass is a compiled function: 2 calls recorded"));
}

// A file holds the results alone, and none of what is kept for gradients.
BOOST_AUTO_TEST_CASE(a_file_of_a_module_has_its_results) {
  TempFolder folder;
  Twins<nn::Sequential> nets(normalized_model, sgd);
  nets.each([](nn::Sequential& net) { net.eval(); });
  for (int i = 0; i < 4; ++i) nets.pass(inputs(5));
  nets.fast.save(folder / "net.tenon", {.inputs = {"x"}, .outputs = {"scores"}});
  auto program = Program::load(folder / "net.tenon");
  const Tensor x = inputs(5);
  const auto out = program.run({{"x", x}});
  BOOST_TEST(out.size() == 1u);
  BOOST_TEST(same_bits(out["scores"], nets.plain(x).detach()));
}

BOOST_AUTO_TEST_CASE(passes_may_be_switched_off_in_both_directions) {
  const Tensor w = randn({60, 500}).requires_grad_();
  const auto plain = [&](const Tensor& x) { return (x * w + 1.0).relu().sigmoid(); };
  auto with = compile(plain);
  auto without = compile(plain, {.passes = {.pointwise = false}});
  for (int i = 0; i < 6; ++i) {
    const Tensor x = randn({60, 500});
    const Tensor expected = plain(x), gradient = grad(expected.sum(), w);
    for (auto* fast : {&with, &without}) {
      const Tensor found = (*fast)(x);
      BOOST_TEST(same_bits(found, expected));
      BOOST_TEST(same_bits(grad(found.sum(), w), gradient));
    }
  }
  const std::string on = with.explain(), off = without.explain();
  const auto backward = on.find("its backward pass");
  BOOST_REQUIRE(backward != on.npos);
  BOOST_TEST(on.find("fused: ") < backward, on);
  BOOST_TEST(on.find("fused: ", backward) != on.npos, on);
  BOOST_TEST(!test::has(off, "fused: "), off);
}

// A module that takes the place of another one begins in its own mode.
BOOST_AUTO_TEST_CASE(modes_of_a_module_that_is_gone_are_not_those_of_the_next) {
  std::optional<nn::Dropout> layer(0.5);
  auto compiled = compile([&](const Tensor& x) { return (*layer)(x); });
  const Tensor x = ones({64});
  const auto keeps_all = [&] { return same_bits(compiled(x), x); };
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 3; ++i) BOOST_TEST(!keeps_all());
    layer->eval();
    for (int i = 0; i < 3; ++i) BOOST_TEST(keeps_all());
    layer.emplace(0.5);
    BOOST_TEST(!keeps_all());
    layer->eval();
    BOOST_TEST(keeps_all());
    layer->train();
  }
  BOOST_TEST(!says(compiled, "0 programs made"));
}

namespace {
struct Times : nn::Module<Times> {
  bool training = true;
  static constexpr int num_fields = 1;
  explicit Times(bool training) : training(training) {}
  Tensor forward(const Tensor& x) { return training ? x * 2.0 : x * 3.0; }
};
}  // namespace

// Neither of them was ever switched: each is born in its mode.
BOOST_AUTO_TEST_CASE(a_module_in_the_place_of_another_is_not_taken_for_it) {
  std::optional<Times> net(true);
  auto compiled = compile([&](const Tensor& x) { return (*net)(x); });
  const Tensor x = randn({8});
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 4; ++i) BOOST_TEST(same_bits(compiled(x), x * 2.0));
    net.emplace(false);
    for (int i = 0; i < 4; ++i) BOOST_TEST(same_bits(compiled(x), x * 3.0));
    net.emplace(true);
  }
  BOOST_TEST(!says(compiled, "0 programs made"));
}

// The function makes it anew in each call, or it has nothing to do with the function.
BOOST_AUTO_TEST_CASE(modules_that_come_and_go_change_nothing) {
  auto compiled = compile([&](const Tensor& x) { return Times(true)(x) + 1.0; });
  const Tensor x = randn({8});
  for (int i = 0; i < 6; ++i) {
    BOOST_TEST(same_bits(compiled(x), x * 2.0 + 1.0));
    BOOST_TEST(same_bits(Times(false)(x), x * 3.0));
  }
  BOOST_TEST(says(compiled, "2 calls recorded, 0 not recorded, 1 programs made"));
}

BOOST_AUTO_TEST_CASE(tries_in_one_mode_are_not_those_in_another) {
  nn::Dropout layer(0.5);
  int calls = 0;
  auto compiled = compile([&](const Tensor& x) {
    const Tensor y = layer(x);
    return layer.training && calls++ % 2 ? relu(y) : y + 1.0;
  });
  const Tensor x = ones({8});
  for (int i = 0; i < 14; ++i) compiled(x);
  BOOST_TEST(says(compiled, "10 calls recorded, 4 not recorded, 0 programs made"));
  layer.eval();
  for (int i = 0; i < 4; ++i) BOOST_TEST(same_bits(compiled(x), x + 1.0));
  BOOST_TEST(says(compiled, "1 programs made"));
}

BOOST_AUTO_TEST_SUITE_END()
