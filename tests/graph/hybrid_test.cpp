// Compiled modules and functions whose results have a history: plain training loops around them
// leave the same bits as without.
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "bits.h"
#include "saved_nets.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(hybrid_test)

using namespace tenon;
using test::require_error;
using test::same_bits;
using test::says;
using test::saved::Attending;
using test::saved::Convolutional;
using test::saved::MakeOptimizer;
using test::saved::Optimizer;
using test::saved::Perceptron;
using test::saved::Recurrent;
using test::saved::train_step;
using test::saved::twins;

namespace {

template <class Net>
void require_alike(const Net& a, const Net& b) {
  const auto p = nn::parameters(a), q = nn::parameters(b);
  for (size_t i = 0; i < p.size(); ++i) {
    BOOST_TEST(same_bits(p[i], q[i]));
    BOOST_TEST(same_bits(p[i].grad(), q[i].grad()));
    BOOST_TEST(p[i].version() == q[i].version());
  }
  BOOST_TEST(same_bits(nn::buffers(a), nn::buffers(b)));
}

template <class Net>
void compare(const MakeOptimizer& make, const std::function<Tensor()>& batch) {
  auto [a, b] = twins<Net>();
  auto fast = compile(b);
  const Optimizer of_a = make(a.parameters()), of_b = make(b.parameters());
  for (int i = 0; i < 10; ++i) {
    const Tensor x = batch(), y = randint(0, 3, {x.size(0)});
    const RandomState state = random_state();
    const Tensor expected = train_step(a, *of_a, x, y);
    const RandomState after = random_state();
    set_random_state(state);
    const Tensor found = train_step(fast, *of_b, x, y);
    BOOST_TEST(same_bits(found, expected));
    BOOST_TEST((random_state() == after));
    require_alike(a, b);
  }
  BOOST_TEST(says(fast, "replayed 8 times"));
  BOOST_TEST(says(fast, "its backward pass is a compiled function: 2 calls recorded"));
  BOOST_TEST(says(fast, "replayed 6 times"));
}

MakeOptimizer sgd() {
  return [](std::vector<Tensor> p) {
    return std::make_unique<optim::SGD>(std::move(p),
                                        optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
  };
}
MakeOptimizer adam() {
  return [](std::vector<Tensor> p) {
    return std::make_unique<optim::Adam>(std::move(p), optim::AdamOptions{.lr = 1e-2});
  };
}

// Calls `compiled` until it and its backward pass are replayed.
void warm(auto& compiled, const auto& make) {
  for (int i = 0; i < 5; ++i) compiled(make()).sum().backward();
}

}  // namespace

BOOST_AUTO_TEST_CASE(plain_training_loops_have_the_same_bits) {
  compare<Perceptron>(sgd(), [] { return randn({4, 6}); });
  compare<Perceptron>(adam(), [] { return randn({4, 6}); });
  compare<Convolutional>(sgd(), [] { return randn({3, 1, 8, 8}); });
  compare<Recurrent>(adam(), [] { return randn({3, 4, 5}); });
  compare<Attending>(sgd(), [] { return randint(0, 11, {3, 5}); });
}

BOOST_AUTO_TEST_CASE(train_and_eval_and_no_grad_are_programs_of_their_own) {
  auto [a, b] = twins<Convolutional>();
  auto fast = compile(b);
  const Optimizer of_a = sgd()(a.parameters()), of_b = sgd()(b.parameters());
  for (int round = 0; round < 3; ++round) {
    a.train(), b.train();
    for (int i = 0; i < 4; ++i) {
      const Tensor x = randn({3, 1, 8, 8}), y = randint(0, 3, {3});
      BOOST_TEST(same_bits(train_step(fast, *of_b, x, y), train_step(a, *of_a, x, y)));
    }
    a.eval(), fast.module().eval();
    for (int i = 0; i < 4; ++i) {
      const Tensor x = randn({3, 1, 8, 8});
      BOOST_TEST(same_bits(no_grad([&] { return fast(x); }), no_grad([&] { return a(x); })));
      BOOST_TEST(!no_grad([&] { return fast(x); }).requires_grad());
    }
    require_alike(a, b);
  }
  BOOST_TEST(says(fast, "under NoGrad"));
}

BOOST_AUTO_TEST_CASE(several_results_have_gradients_together_and_each_alone) {
  const auto plain = [](const Tensor& x, const Tensor& w, const Tensor& v) {
    const Tensor h = tanh(x * w);
    return std::tuple(h, h * v, (h * h).sum(), (x > 0.0).to(f32));
  };
  const Tensor w = randn({3}).requires_grad_(), v = randn({3}).requires_grad_();
  auto fast = compile([&](const Tensor& x) { return plain(x, w, v); });
  for (int i = 0; i < 24; ++i) {
    const Tensor x = randn({2, 3}), g = randn({2, 3});
    const auto gradients = [&](const std::tuple<Tensor, Tensor, Tensor, Tensor>& results) {
      auto& [h, y, s, positive] = results;
      BOOST_TEST(!positive.requires_grad());
      const std::vector<Tensor> inputs{w, v};
      const GradOptions options{.allow_unused = true};
      if (i % 3 == 0) return grad(std::vector{h}, inputs, std::vector{g}, options);
      if (i % 3 == 1) return grad(std::vector{y, s}, inputs, std::vector{g, Tensor()}, options);
      return grad(std::vector{s}, std::vector{w}, {}, options);
    };
    const auto expected = gradients(plain(x, w, v)), found = gradients(fast(x));
    BOOST_TEST(same_bits(found, expected));
    if (i % 3 == 0) BOOST_TEST(!found[1].defined());  // the first result does not depend on it
  }
  BOOST_TEST(says(fast, "replayed 21 times"));  // and looked at once
  BOOST_TEST(says(fast, "2 programs made"));    // for the two sets of results
}

BOOST_AUTO_TEST_CASE(arguments_get_gradients_whatever_is_before_them) {
  Perceptron net;
  net.eval();
  auto fast = compile(net);
  const Tensor w = randn({6}).requires_grad_();
  for (int i = 0; i < 8; ++i) {
    const Tensor values = randn({4, 6});
    const auto gradients = [&](auto& model, bool history) {
      const Tensor x = values.clone().requires_grad_();
      const Tensor loss = model(history ? x * w : x).sum();
      return grad(std::vector{loss}, history ? std::vector{x, w} : std::vector{x});
    };
    BOOST_TEST(same_bits(gradients(fast, i % 2), gradients(net, i % 2)));
  }
  BOOST_TEST(says(fast, "replayed 6 times"));
}

BOOST_AUTO_TEST_CASE(one_compiled_module_twice_before_a_backward_pass) {
  auto [a, b] = twins<Perceptron>();
  auto fast = compile(b);
  const Optimizer of_a = sgd()(a.parameters()), of_b = sgd()(b.parameters());
  for (int i = 0; i < 8; ++i) {
    const Tensor x = randn({4, 6}), y = randn({4, 6});
    const auto siamese = [&](auto& model, optim::Optimizer& optimizer) {
      optimizer.zero_grad();
      const Tensor loss = (model(x) - model(y)).pow(2.0).sum();
      loss.backward();
      optimizer.step();
      return loss;
    };
    const RandomState state = random_state();
    const Tensor expected = siamese(a, *of_a);
    set_random_state(state);
    BOOST_TEST(same_bits(siamese(fast, *of_b), expected));
    require_alike(a, b);
  }
}

BOOST_AUTO_TEST_CASE(a_graph_may_be_kept_and_is_freed_otherwise) {
  const Tensor w = randn({3}).requires_grad_();
  auto fast = compile([&](const Tensor& x) { return exp(x * w).sum(); });
  for (int i = 0; i < 6; ++i) {
    const Tensor x = randn({3}), loss = fast(x), expected = grad(exp(x * w).sum(), w);
    for (int k = 0; k < 3; ++k)
      BOOST_TEST(same_bits(grad(loss, w, {.retain_graph = true}), expected));
    loss.backward();
    require_error<AutogradError>([&] { loss.backward(); }, "for a second time", "retain_graph");
  }
  BOOST_TEST(says(fast, "replayed 4 times"));
}

BOOST_AUTO_TEST_CASE(a_value_that_was_changed_before_the_backward_pass_is_an_error) {
  const Tensor w = randn({3}).requires_grad_();
  auto fast = compile([&](const Tensor& x) { return std::pair((x * w).sum(), x + w); });
  for (int i = 0; i < 8; ++i) {
    Tensor x = randn({3});
    const auto [product, sum] = fast(x);
    x.add_(1.0);
    if (i % 2)
      require_error<AutogradError>([&] { product.backward(); }, "mul: input 0 of shape (3,)",
                                   "changed in place (version", "change a clone()");
    else
      BOOST_TEST(same_bits(grad(sum.sum(), w), ones({3})));  // does not need what was changed
  }
  BOOST_TEST(says(fast, "replayed 6 times"));
}

BOOST_AUTO_TEST_CASE(gradients_of_higher_order_are_an_error_that_says_what_to_do) {
  const Tensor w = randn({3}).requires_grad_();
  auto fast = compile([&](const Tensor& x) { return exp(x * w).sum(); });
  warm(fast, [] { return randn({3}); });
  require_error<AutogradError>([&] { grad(fast(ones({3})), w, {.create_graph = true}); },
                               "a compiled function has no gradients of higher order",
                               "call the function that was compiled");
}

BOOST_AUTO_TEST_CASE(hooks_of_arguments_and_parameters_are_called_each_time) {
  Perceptron net;
  auto fast = compile(net);
  int called = 0;
  const HookHandle handle = register_hook(net.fc1.weight, [&](const Tensor& g) {
    ++called;
    return g * 2.0;
  });
  net.eval();
  for (int i = 0; i < 6; ++i) {
    Tensor x = randn({4, 6}).requires_grad_();
    const HookHandle of_x = register_hook(x, [&](const Tensor& g) {
      ++called;
      return g * 3.0;
    });
    net.zero_grad();
    fast(x).sum().backward();
    const Tensor found = net.fc1.weight.grad(), of_argument = x.grad();
    net.zero_grad();
    x.set_grad(Tensor());
    net(x).sum().backward();
    BOOST_TEST(same_bits(found, net.fc1.weight.grad()));
    BOOST_TEST(same_bits(of_argument, x.grad()));
    BOOST_TEST(called == 4 * (i + 1));
  }
  BOOST_TEST(says(fast, "replayed 4 times"));
}

BOOST_AUTO_TEST_CASE(a_guard_of_autocast_around_the_call_is_a_program_of_its_own) {
  auto [a, b] = twins<Perceptron>();
  auto fast = compile(b);
  const Optimizer of_a = sgd()(a.parameters()), of_b = sgd()(b.parameters());
  for (int i = 0; i < 16; ++i) {
    const Tensor x = randn({4, 6}), y = randint(0, 3, {4});
    const auto run = [&](auto& model, optim::Optimizer& optimizer) {
      optimizer.zero_grad();
      const Autocast guard(bf16, {.enabled = i % 4 < 2});
      const Tensor loss = cross_entropy(model(x), y);
      loss.backward();
      optimizer.step();
      return loss;
    };
    const RandomState state = random_state();
    const Tensor expected = run(a, *of_a);
    set_random_state(state);
    BOOST_TEST(same_bits(run(fast, *of_b), expected));
    require_alike(a, b);
  }
  BOOST_TEST(says(fast, "2 programs made"));
  BOOST_TEST(says(fast, "under Autocast"));
}

BOOST_AUTO_TEST_CASE(results_may_be_nested) {
  nn::LSTM lstm(3, 4);
  auto fast = compile(lstm);
  auto nested = compile([](const Tensor& x) {
    return std::pair(x + 1.0, std::tuple(x * 2.0, std::array{x - 1.0, x.neg()}));
  });
  for (int i = 0; i < 5; ++i) {
    const Tensor x = randn({5, 2, 3});
    const auto expected = lstm(x), found = fast(x);
    BOOST_TEST(same_bits(std::get<0>(found), std::get<0>(expected)));
    BOOST_TEST(same_bits(grad(std::get<0>(found).sum(), lstm.parameters()[0]),
                         grad(std::get<0>(expected).sum(), lstm.parameters()[0])));
    const auto [a, rest] = nested(x);
    const auto& [b, list] = rest;
    BOOST_TEST(same_bits(a, x + 1.0));
    BOOST_TEST(same_bits(b, x * 2.0));
    BOOST_TEST(same_bits(list[1], x.neg()));
  }
  BOOST_TEST(says(fast, "replayed 3 times"));
  BOOST_TEST(says(nested, "replayed 3 times"));
}

BOOST_AUTO_TEST_CASE(a_compiled_module_prints_its_module) {
  Perceptron net;
  auto fast = compile(net);
  BOOST_TEST(fast.str() ==
             "Compiled(\n"
             "  (module): Perceptron(\n"
             "    (fc1): Linear(in_features=6, out_features=8, bias=True)\n"
             "    (fc2): Linear(in_features=8, out_features=3, bias=True)\n"
             "    (drop): Dropout(p=0.3, inplace=False)\n"
             "  )\n"
             ")");
  BOOST_TEST(fast.module().parameters().size() == 4u);
  warm(fast, [] { return randn({2, 6}); });
  BOOST_TEST(says(fast, "a history of"));
}

BOOST_AUTO_TEST_SUITE_END()
