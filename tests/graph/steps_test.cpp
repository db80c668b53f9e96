// Whole training steps, compiled and as always: the same bits everywhere.
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "bits.h"
#include "saved_nets.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(steps_test)

using namespace tenon;
using test::has;
using test::same_bits;
using test::says;
using test::saved::Attending;
using test::saved::Convolutional;
using test::saved::MakeOptimizer;
using test::saved::Optimizer;
using test::saved::Perceptron;
using test::saved::Recurrent;

namespace {

// One model with its optimizer; two of them begin alike.
template <class Net>
struct Run {
  Net net;
  Optimizer optimizer;
  explicit Run(const MakeOptimizer& make) : optimizer(make(net.parameters())) {}

  Tensor step(const Tensor& x, const Tensor& y, double clip = 0) {
    optimizer->zero_grad();
    Tensor loss = cross_entropy(net(x), y);
    loss.backward();
    if (clip > 0) nn::utils::clip_grad_norm_(net.parameters(), clip);
    optimizer->step();
    return loss;
  }
};

struct Batch {
  Tensor x, y;
};

template <class Net>
std::pair<std::unique_ptr<Run<Net>>, std::unique_ptr<Run<Net>>> twins(const MakeOptimizer& make) {
  manual_seed(11);
  auto a = std::make_unique<Run<Net>>(make);
  manual_seed(11);
  auto b = std::make_unique<Run<Net>>(make);
  return {std::move(a), std::move(b)};
}

template <class Net>
void require_alike(const Net& a, const Net& b) {
  const auto p = nn::parameters(const_cast<Net&>(a)), q = nn::parameters(const_cast<Net&>(b));
  for (size_t i = 0; i < p.size(); ++i) {
    BOOST_TEST(same_bits(p[i], q[i]));
    BOOST_TEST(same_bits(p[i].grad(), q[i].grad()));
    BOOST_TEST(p[i].version() == q[i].version());
    if (p[i].grad().defined()) BOOST_TEST(p[i].grad().version() == q[i].grad().version());
  }
  BOOST_TEST(same_bits(nn::buffers(const_cast<Net&>(a)), nn::buffers(const_cast<Net&>(b))));
}

// Both make the same steps, one of them compiled. A schedule changes the learning rate in between.
template <class Net>
void compare(const MakeOptimizer& make, const std::function<Batch()>& batch, double clip = 0,
             int steps = 8) {
  auto [a, b] = twins<Net>(make);
  auto compiled =
      compile([&b = *b, clip](const Tensor& x, const Tensor& y) { return b.step(x, y, clip); });
  optim::StepLR schedule_a(*a->optimizer, 3), schedule_b(*b->optimizer, 3);
  for (int i = 0; i < steps; ++i) {
    const auto [x, y] = batch();
    const RandomState state = random_state();
    const Tensor expected = a->step(x, y, clip);
    const RandomState after = random_state();
    set_random_state(state);
    BOOST_TEST(same_bits(compiled(x, y), expected));
    BOOST_TEST((random_state() == after));
    schedule_a.step(), schedule_b.step();
    // Both forms may be mixed.
    if (i == 5) {
      const RandomState between = random_state();
      a->step(x, y, clip);
      set_random_state(between);
      b->step(x, y, clip);
    }
  }
  require_alike(a->net, b->net);
  BOOST_TEST(says(compiled, "replayed"));
}

Batch vectors() { return {randn({4, 6}), randint(0, 3, {4})}; }
Batch images() { return {randn({4, 1, 8, 8}), randint(0, 3, {4})}; }
Batch sequences() { return {randn({4, 6, 5}), randint(0, 3, {4})}; }
Batch words() { return {randint(0, 11, {4, 6}), randint(0, 3, {4})}; }

template <class O, class Options>
MakeOptimizer making(Options options) {
  return [options](std::vector<Tensor> params) { return std::make_unique<O>(params, options); };
}
const MakeOptimizer adam = making<optim::Adam>(optim::AdamOptions{.lr = 0.01});

}  // namespace

BOOST_AUTO_TEST_CASE(with_each_optimizer) {
  using namespace optim;
  const std::vector<std::pair<const char*, MakeOptimizer>> all = {
      {"SGD", making<SGD>(SGDOptions{.lr = 0.1})},
      {"SGD, momentum", making<SGD>(SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1})},
      {"Adam", adam},
      {"AdamW", making<AdamW>(AdamWOptions{.lr = 0.01, .amsgrad = true})},
      {"RMSprop", making<RMSprop>(RMSpropOptions{.lr = 0.01})},
      {"Adagrad", making<Adagrad>(AdagradOptions{.lr = 0.01})},
      {"Adadelta", making<Adadelta>(AdadeltaOptions{})},
      {"Adamax", making<Adamax>(AdamaxOptions{})},
      {"NAdam", making<NAdam>(NAdamOptions{})},
      {"RAdam", making<RAdam>(RAdamOptions{})},
      {"ASGD", making<ASGD>(ASGDOptions{})},
      {"Rprop", making<Rprop>(RpropOptions{})},
      {"Lion", making<Lion>(LionOptions{})}};
  for (auto& [name, make] : all) {
    BOOST_TEST_CONTEXT(name) { compare<Perceptron>(make, vectors); }
  }
}

BOOST_AUTO_TEST_CASE(with_convolutions_and_batch_norm) { compare<Convolutional>(adam, images); }
BOOST_AUTO_TEST_CASE(with_an_lstm_and_clipping) { compare<Recurrent>(adam, sequences, 0.5); }
BOOST_AUTO_TEST_CASE(with_attention_and_dropout) { compare<Attending>(adam, words, 1.0); }

namespace {
struct Recomputed : nn::Module<Recomputed> {
  nn::Linear fc1{6, 8}, fc2{8, 8}, fc3{8, 3};
  nn::BatchNorm1d norm{8};
  nn::Dropout drop{0.3};
  Tensor forward(const Tensor& x) {
    const auto part = [this](const Tensor& h) {
      const auto inner = [this](const Tensor& g) { return drop(tanh(g)) * 2.0; };
      return drop(tanh(norm(checkpoint(inner, fc2(h)))));
    };
    return fc3(drop(checkpoint(part, relu(fc1(x)))));
  }
};
}  // namespace

// The second call of a checkpoint draws what the first has drawn, in each replay.
BOOST_AUTO_TEST_CASE(with_checkpoints_inside) {
  compare<Recomputed>(adam, vectors);
  // The backward pass of the program computes the checkpoint's values again.
  Tensor w = randn({8, 8}).requires_grad_();
  const auto text_of_steps = [&](bool again) {
    auto step = compile([&](const Tensor& x) {
      const auto part = [&](const Tensor& h) { return tanh(matmul(tanh(matmul(h, w)), w)); };
      w.set_grad({});
      const Tensor loss = (again ? checkpoint(part, x) : part(x)).sum();
      loss.backward();
      return loss;
    });
    for (int i = 0; i < 4; ++i) step(randn({4, 8}));
    return step.explain();
  };
  BOOST_TEST(has(text_of_steps(false), "matmul x5"));
  BOOST_TEST(has(text_of_steps(true), "matmul x7"));
}

BOOST_AUTO_TEST_CASE(a_step_with_checkpoints_can_be_saved) {
  const auto [run, twin] = twins<Recomputed>(adam);
  auto step = compile([&run = *run](const Tensor& x, const Tensor& y) { return run.step(x, y); });
  std::vector<Batch> batches;
  for (int i = 0; i < 6; ++i) batches.push_back(vectors());
  for (int i = 0; i < 4; ++i) step(batches[i].x, batches[i].y);
  const TempFolder folder;
  step.save(folder / "step.tenon");
  auto program = Program::load(folder / "step.tenon");
  for (int i = 4; i < 6; ++i) {
    const auto [x, y] = batches[i];
    BOOST_TEST(same_bits(program.run({{"0", x}, {"1", y}})["0"], step(x, y)));
  }
  // It takes the memory that checkpoints leave.
  Tensor w = randn({16, 16}).requires_grad_();
  const auto bytes_of_loaded = [&](bool again) {
    const auto part = [&](const Tensor& h) { return tanh(matmul(tanh(matmul(h, w)), w)); };
    auto pass = compile([&](const Tensor& x) {
      w.set_grad({});
      Tensor h = x;
      for (int i = 0; i < 4; ++i) h = again ? checkpoint(part, h) : part(h);
      h.sum().backward();
      return w.grad();
    });
    for (int i = 0; i < 3; ++i) pass(randn({512, 16}));
    pass.save(folder / "pass.tenon");
    const uint64_t before = memory_stats(default_device()).allocated;
    auto loaded = Program::load(folder / "pass.tenon");
    loaded.run({{"0", randn({512, 16})}});
    synchronize();
    return memory_stats(default_device()).allocated - before;
  };
  BOOST_TEST(bytes_of_loaded(true) < bytes_of_loaded(false) * 3 / 4);
}

BOOST_AUTO_TEST_CASE(with_batches_of_two_sizes) {
  int count = 0;
  compare<Perceptron>(
      adam,
      [&] {
        const int64_t n = ++count % 3 ? 4 : 2;
        return Batch{randn({n, 6}), randint(0, 3, {n})};
      },
      0, 16);
}

BOOST_AUTO_TEST_CASE(with_gradients_of_several_batches) {
  auto [a, b] = twins<Perceptron>(adam);
  a->net.eval(), b->net.eval();
  auto pass = [](auto& run, const Tensor& x, const Tensor& y) {
    Tensor loss = cross_entropy(run.net(x), y) / 2.0;
    loss.backward();
    return loss;
  };
  auto compiled = compile([&](const Tensor& x, const Tensor& y) { return pass(*b, x, y); });
  for (int i = 0; i < 16; ++i) {
    const auto [x, y] = vectors();
    BOOST_TEST(same_bits(pass(*a, x, y), compiled(x, y)));
    if (i % 2 == 0) continue;
    for (auto* run : {a.get(), b.get()}) run->optimizer->step(), run->optimizer->zero_grad();
  }
  require_alike(a->net, b->net);
  BOOST_TEST(says(compiled, "2 programs") != says(compiled, "no program"));
}

BOOST_AUTO_TEST_CASE(a_state_that_was_loaded_goes_on_as_always) {
  auto [a, b] = twins<Perceptron>(adam);
  auto compiled = compile([&b = *b](const Tensor& x, const Tensor& y) { return b.step(x, y, 0); });
  auto both = [&, &a = *a] {
    const auto [x, y] = vectors();
    const RandomState state = random_state();
    const Tensor expected = a.step(x, y, 0);
    set_random_state(state);
    BOOST_TEST(same_bits(compiled(x, y), expected));
  };
  for (int i = 0; i < 4; ++i) both();
  const auto copied = [](const nn::StateDict& tensors) {
    nn::StateDict copies;
    for (auto& [name, t] : tensors) copies.set(name, t.clone());
    return copies;
  };
  const nn::StateDict model = copied(nn::state_dict(b->net));
  optim::OptimizerState optimizer = b->optimizer->state_dict();
  optimizer.tensors = copied(optimizer.tensors);
  for (int i = 0; i < 4; ++i) both();
  for (auto* run : {a.get(), b.get()}) {
    load_state_dict(run->net, model);
    run->optimizer->load_state_dict(optimizer);
  }
  for (int i = 0; i < 6; ++i) both();
  require_alike(a->net, b->net);
}

BOOST_AUTO_TEST_CASE(autocast_inside_and_around) {
  auto [a, b] = twins<Perceptron>(adam);
  auto step = [](auto& run, const Tensor& x, const Tensor& y) {
    run.optimizer->zero_grad();
    Tensor loss = autocast(bf16, [&] { return cross_entropy(run.net(x), y); });
    loss.backward();
    run.optimizer->step();
    return loss;
  };
  auto compiled = compile([&](const Tensor& x, const Tensor& y) { return step(*b, x, y); });
  for (int i = 0; i < 10; ++i) {
    const auto [x, y] = vectors();
    const RandomState state = random_state();
    const bool around = i >= 5 && i < 9;
    auto call = [&](auto&& f) { return around ? autocast(bf16, f) : f(); };
    const Tensor expected = call([&] { return step(*a, x, y); });
    set_random_state(state);
    BOOST_TEST(same_bits(call([&] { return compiled(x, y); }), expected));
  }
  require_alike(a->net, b->net);
  BOOST_TEST(says(compiled, "under Autocast(bf16):\n    a program of"));
}

// Calls that make gradients and calls that add to them take turns, and each gets a program.
BOOST_AUTO_TEST_CASE(gradients_that_are_summed_over_two_calls) {
  const auto make = [](std::vector<Tensor> params) {
    return std::make_unique<optim::SGD>(params, optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
  };
  auto [a, b] = twins<Perceptron>(make);
  const auto pass_of = [](Run<Perceptron>& run) {
    return [&run](const Tensor& x, const Tensor& y) {
      Tensor loss = cross_entropy(run.net(x), y);
      loss.backward();
      return loss.detach();
    };
  };
  auto plain = pass_of(*a);
  auto compiled = compile(pass_of(*b));
  for (int i = 0; i < 12; ++i) {
    const Tensor x = randn({4, 6}), y = randint(0, 3, {4});
    manual_seed(static_cast<uint64_t>(i));
    const Tensor expected = plain(x, y);
    manual_seed(static_cast<uint64_t>(i));
    BOOST_TEST(same_bits(compiled(x, y), expected));
    require_alike(a->net, b->net);
    if (i % 2 == 0) continue;
    for (auto* run : {a.get(), b.get()}) run->optimizer->step(), run->optimizer->zero_grad();
  }
  BOOST_TEST(says(compiled, "2 programs made"));
}

namespace {

// Steps that a replay takes, outside of the function, may be made to wait.
struct SlowSGD : optim::SGD {
  using optim::SGD::SGD;
  bool inside = false;
  int until_slow = 0;  // replays that come before three that wait
  void step() override {
    if (!inside && until_slow-- <= 0 && until_slow >= -3)
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
    optim::SGD::step();
  }
};

}  // namespace

// The replays that are timed, some after each look, wait a thousand times as long as the function
// takes.
BOOST_AUTO_TEST_CASE(a_program_that_is_slower_than_its_function_is_set_aside) {
  for (const bool measure : {true, false}) {
    const Tensor w = ones({3}).requires_grad_(), plain = ones({3}).requires_grad_();
    SlowSGD slow({w}, {.lr = 0.1});
    optim::SGD sgd({plain}, {.lr = 0.1});
    const auto step = [](const Tensor& of, optim::Optimizer& optimizer, const Tensor& x) {
      optimizer.zero_grad();
      (of * x).sum().backward();
      optimizer.step();
    };
    int runs = 0;
    auto compiled = compile(
        [&](const Tensor& x) {
          slow.inside = true;
          slow.until_slow = ++runs > 2 ? 16 : 1000;
          step(w, slow, x);
          slow.inside = false;
        },
        {.measure = measure});
    for (int i = 0; i < 400; ++i) {
      const Tensor x = full({3}, i * 0.01);
      synchronize();  // nothing is timed while earlier work runs
      compiled(x);
      step(plain, sgd, x);
      if (runs > 6) break;  // it runs itself
    }
    BOOST_TEST(same_bits(w, plain));
    BOOST_TEST((runs > 6) == measure);
    BOOST_TEST(says(compiled, "it is set aside, because it is slower") == measure);
    BOOST_TEST(says(compiled, "and the function itself") == measure);
  }
}

// What a hook does besides is no part of a program: a step runs as always while there is one.
BOOST_AUTO_TEST_CASE(a_program_goes_on_when_the_hook_of_a_parameter_is_gone) {
  nn::Linear net(3, 2);
  int runs = 0, calls = 0;
  auto step = compile([&](const Tensor& x) {
    ++runs;
    net.zero_grad();
    Tensor loss = net(x).sum();
    loss.backward();
    return loss;
  });
  const Tensor x = ones({4, 3});
  for (int i = 0; i < 4; ++i) step(x);
  BOOST_TEST(runs == 2);
  HookHandle handle = register_hook(net.weight, [&](const Tensor& g) {
    ++calls;
    return g * 2.0;
  });
  for (int i = 0; i < 2; ++i) step(x);
  BOOST_TEST(same_bits(net.weight.grad(), full({2, 3}, 8.0)));
  handle.remove();
  BOOST_TEST(calls == 2);
  const int before = runs;
  for (int i = 0; i < 4; ++i) step(x);
  BOOST_TEST(runs == before);
  BOOST_TEST(calls == 2);
  BOOST_TEST(same_bits(net.weight.grad(), full({2, 3}, 4.0)));
}

BOOST_AUTO_TEST_SUITE_END()
