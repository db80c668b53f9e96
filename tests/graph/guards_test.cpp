// When a program may not run: other parameters, other modes, gradients that came or went, memory
// that is shared in another way.
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "bits.h"

BOOST_AUTO_TEST_SUITE(guards_test)

using namespace tenon;
using test::same_bits;
using test::says;

namespace {

// Calls `compiled` until it is replayed.
void warm(auto& compiled, const auto&... make) {
  for (int i = 0; i < 4; ++i) compiled(make()...);
}
Tensor noise() { return randn({4, 3}); }

struct Small : nn::Module<Small> {
  nn::Linear fc{3, 2};
  nn::Dropout drop{0.5};
  Tensor forward(const Tensor& x) { return drop(fc(x)); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(an_argument_that_was_the_same_each_time_is_not_taken_for_what_is_outside) {
  const Tensor y = randn({3}), z = randn({3}), w = randn({3});
  auto compiled = compile([&](const Tensor& x) { return x * 2.0 + y; });
  for (int i = 0; i < 4; ++i) BOOST_TEST(same_bits(compiled(y), y * 2.0 + y));
  BOOST_TEST(says(compiled, "replayed 2 times"));
  for (const Tensor& x : {z, w, y, z}) BOOST_TEST(same_bits(compiled(x), x * 2.0 + y));
  BOOST_TEST(says(compiled, "2 programs made"));
}

BOOST_AUTO_TEST_CASE(parts_of_one_tensor_are_different_arguments) {
  const Tensor all = randn({20, 3});
  auto compiled = compile([&](const Tensor& x) { return x.sum({0}) + all[0]; });
  for (int64_t i = 0; i < 10; ++i) {
    const Tensor x = all.narrow(0, 2 * i, 2);
    BOOST_TEST(same_bits(compiled(x), x.sum({0}) + all[0]));
  }
  BOOST_TEST(says(compiled, "replayed 8 times"));
}

// The memory of the user may be given several times, each time as a tensor of its own.
BOOST_AUTO_TEST_CASE(tensors_over_one_memory_of_the_user_are_not_taken_for_two) {
  const NoGrad guard;
  const auto body = [](const Tensor& a, const Tensor& b) {
    const Tensor c = a.clone();
    Tensor(b).add_(1.0);
    return matmul(c, c);
  };
  auto compiled = compile(body);
  for (int i = 0; i < 8; ++i) {
    std::vector<float> memory(24, 1.0f);
    const Tensor a = from_blob(memory.data(), {4, 4}, f32);
    const bool apart = i == 6;
    const Tensor b = apart ? ones({4, 4}) : from_blob(memory.data() + 8, {4, 4}, f32);
    BOOST_TEST(same_bits(compiled(a, b), full({4, 4}, 4.0)));
    b.wait();
    BOOST_TEST(memory[8] == (apart ? 1 : 2));
  }
}

BOOST_AUTO_TEST_CASE(
    an_argument_over_memory_of_the_user_that_is_used_from_outside_is_not_taken_for_two) {
  const NoGrad guard;
  std::vector<float> memory(16, 1.0f);
  const Tensor outside = from_blob(memory.data(), {4, 4}, f32);
  auto compiled = compile([&](const Tensor& b) {
    const Tensor c = outside.clone();
    Tensor(b).add_(1.0);
    return matmul(c, c);
  });
  for (int i = 0; i < 6; ++i) compiled(zeros({4, 4}));
  for (int i = 0; i < 4; ++i) {
    const double value = outside.select(0, 0).select(0, 0).item();
    const Tensor b = from_blob(memory.data(), {4, 4}, f32);
    BOOST_TEST(same_bits(compiled(b), full({4, 4}, 4 * value * value)));
    b.wait();
  }
}

BOOST_AUTO_TEST_CASE(one_tensor_given_twice_is_not_two) {
  auto compiled = compile([](const Tensor& x, const Tensor& y) { return x * 2.0 + y; });
  for (int i = 0; i < 4; ++i) {
    const Tensor x = noise();
    BOOST_TEST(same_bits(compiled(x, x), x * 2.0 + x));
  }
  for (int i = 0; i < 4; ++i) {
    const Tensor x = noise(), y = noise();
    BOOST_TEST(same_bits(compiled(x, y), x * 2.0 + y));
  }
  const Tensor x = noise();
  BOOST_TEST(same_bits(compiled(x, x), x * 2.0 + x));
}

BOOST_AUTO_TEST_CASE(arguments_may_be_changed_and_may_share_memory) {
  auto plain = [](Tensor x, const Tensor& y) {
    x.add_(y);
    return x * y;
  };
  auto compiled = compile(plain);
  for (int i = 0; i < 6; ++i) {
    Tensor a = noise(), b = a.clone(), y = noise();
    const auto before_a = a.version(), before_b = b.version();
    const Tensor expected = plain(a, y), found = compiled(b, y);
    BOOST_TEST(same_bits(expected, found));
    BOOST_TEST(same_bits(a, b));
    BOOST_TEST(a.version() - before_a == b.version() - before_b);
  }
  for (int i = 0; i < 4; ++i) {  // the second argument changes with the first
    Tensor a = randn({5, 3}), b = a.clone();
    const Tensor expected = plain(a.narrow(0, 0, 4), a.narrow(0, 1, 4));
    BOOST_TEST(same_bits(expected, compiled(b.narrow(0, 0, 4), b.narrow(0, 1, 4))));
    BOOST_TEST(same_bits(a, b));
  }
}

BOOST_AUTO_TEST_CASE(an_argument_that_the_function_changes_otherwise_runs_right) {
  Tensor state = zeros({3});
  auto compiled = compile([&](const Tensor& x) {
    state.add_(x);
    return state + x;
  });
  Tensor expected = zeros({3});
  auto check = [&](const Tensor& x, Tensor model) {
    model.add_(x.is_same(state) ? model.clone() : x);
    return model;
  };
  for (int i = 0; i < 5; ++i) {
    const Tensor x = randn({3});
    expected = check(x, expected);
    BOOST_TEST(same_bits(compiled(x), expected + x));
  }
  expected = expected * 2.0;
  BOOST_TEST(same_bits(compiled(state), expected * 2.0));
}

BOOST_AUTO_TEST_CASE(train_and_eval_are_two_programs) {
  Small net;
  auto compiled = compile([&](const Tensor& x) { return no_grad([&] { return net(x); }); });
  for (int round = 0; round < 3; ++round) {
    for (const bool training : {true, false}) {
      net.train(training);
      for (int i = 0; i < 4; ++i) {
        const Tensor x = noise();
        const RandomState state = random_state();
        const Tensor found = compiled(x);
        const RandomState after = random_state();
        set_random_state(state);
        BOOST_TEST(same_bits(found, no_grad([&] { return net(x); })));
        BOOST_TEST((random_state() == after));
      }
    }
  }
  BOOST_TEST(says(compiled, "2 programs made"));
}

// Modes that come back have their programs, also where they alternate from the first call on.
BOOST_AUTO_TEST_CASE(training_and_evaluation_may_take_turns) {
  Small net, other;
  auto compiled = compile([&](const Tensor& x) { return no_grad([&] { return net(x); }); });
  const auto check = [&] {
    const Tensor x = noise();
    const RandomState state = random_state();
    const Tensor found = compiled(x);
    set_random_state(state);
    BOOST_TEST(same_bits(found, no_grad([&] { return net(x); })));
  };
  for (int i = 0; i < 10; ++i) {
    net.train();
    check();
    const nn::EvalMode mode(net);
    check();
  }
  BOOST_TEST(says(compiled, "4 calls recorded"));
  BOOST_TEST(says(compiled, "2 programs made"));
  // Those of other modules are asked about once each.
  for (int i = 0; i < 6; ++i) {
    other.train(i % 2 == 0);
    check();
  }
  BOOST_TEST(says(compiled, "5 calls recorded"));
}

BOOST_AUTO_TEST_CASE(gradients_that_are_switched_off_and_on) {
  nn::Linear first(3, 3), second(3, 2);
  auto step = compile([&](const Tensor& x) {
    second(first(x)).sum().backward();
    return first.weight.grad() * 2.0;
  });
  for (int i = 0; i < 10; ++i) {
    nn::requires_grad_(second, false);
    first.zero_grad();
    const Tensor x = noise(), found = step(x);
    BOOST_TEST(!second.weight.grad().defined());
    nn::requires_grad_(second, true);
    BOOST_TEST(same_bits(found, first.weight.grad() * 2.0));
  }
  BOOST_TEST(says(step, "2 calls recorded"));
}

BOOST_AUTO_TEST_CASE(a_replaced_module_is_used_at_once) {
  struct Net : nn::Module<Net> {
    nn::LeakyReLU act{0.1};
    nn::Dropout drop{0.0};
    Tensor forward(const Tensor& x) { return drop(act(x)); }
  } net;
  auto compiled = compile([&](const Tensor& x) { return net(x); });
  for (const double slope : {0.1, 0.7, 0.3}) {
    net.act = nn::LeakyReLU(slope);
    for (int i = 0; i < 4; ++i) {
      const Tensor x = noise();
      BOOST_TEST(same_bits(compiled(x), net(x)));
    }
  }
  net.drop = nn::Dropout(1.0);
  BOOST_TEST(same_bits(compiled(noise()), zeros({4, 3})));
}

BOOST_AUTO_TEST_CASE(a_replaced_parameter_is_used_at_once) {
  Small net, other;
  net.eval();
  auto compiled = compile([&](const Tensor& x) { return no_grad([&] { return net(x); }); });
  auto check = [&] {
    for (int i = 0; i < 4; ++i) {
      const Tensor x = noise();
      BOOST_TEST(same_bits(compiled(x), no_grad([&] { return net(x); })));
    }
  };
  check();
  net.fc = nn::Linear(3, 2);
  check();
  const auto saved = nn::state_dict(other);
  load_state_dict(net, saved);
  check();
  net.fc.weight = nn::Parameter(randn({2, 3}));
  check();
  no_grad([&] { net.fc.weight.mul_(2.0); });
  check();
  net.to(f64);
  const Tensor x = randn({4, 3}, {.dtype = f64});
  for (int i = 0; i < 3; ++i) BOOST_TEST(same_bits(compiled(x), no_grad([&] { return net(x); })));
  net.to(Device("cpu:1"));
  const Tensor there = x.to("cpu:1");
  for (int i = 0; i < 3; ++i)
    BOOST_TEST(same_bits(compiled(there), no_grad([&] { return net(there); })));
}

BOOST_AUTO_TEST_CASE(a_tensor_that_was_assigned_anew_and_dropped_is_noticed) {
  Tensor w = ones({3});
  auto compiled = compile([&](const Tensor& x) { return x * w; });
  warm(compiled, [] { return randn({3}); });
  w = full({3}, 5.0);
  BOOST_TEST(same_bits(compiled(ones({3})), full({3}, 5.0)));
}

// This holds for any number of programs and recordings that still refer to the tensor.
BOOST_AUTO_TEST_CASE(a_tensor_that_only_programs_have_is_noticed) {
  Tensor w = ones({3}), b = ones({3}).requires_grad_();
  auto product = compile([&](const Tensor& x) { return std::pair(x * w, w); });
  auto sum = compile([&](const Tensor& x) { return x + w; });
  auto gradient = compile([&](const Tensor& x) {
    b.set_grad(Tensor());
    Tensor loss = (b * x).sum();
    loss.backward();
    return loss.detach();
  });
  auto result = compile([&](const Tensor&) { return w; });
  for (const auto& shape : {Shape{3}, Shape{2, 3}}) {
    const int calls = shape.size() == 1 ? 4 : 1;
    for (int i = 0; i < calls; ++i) {
      const Tensor x = randn(shape);
      product(x), sum(x), gradient(x), result(x);
    }
  }
  BOOST_TEST(says(product, "replayed 2 times"));
  w = full({3}, 5.0);
  b = full({3}, 7.0).requires_grad_();
  const Tensor x = ones({3});
  BOOST_TEST(same_bits(product(x).first, w));
  BOOST_TEST(product(x).second.is_same(w));
  BOOST_TEST(same_bits(sum(x), full({3}, 6.0)));
  BOOST_TEST(result(x).is_same(w));
  BOOST_TEST(same_bits(gradient(x), full({}, 21.0)));
  BOOST_TEST(same_bits(b.grad(), x));
}

BOOST_AUTO_TEST_CASE(gradients_that_are_added_up) {
  const Tensor a = randn({3}).requires_grad_(), b = a.detach().clone().requires_grad_();
  auto pass = [](const Tensor& w, const Tensor& x) {
    Tensor loss = (w * w * x).sum();
    loss.backward();
    return loss;
  };
  auto compiled = compile([&](const Tensor& x) { return pass(b, x); });
  std::vector<Tensor> kept;
  for (int i = 0; i < 12; ++i) {
    const Tensor x = randn({3});
    const Tensor expected = pass(a, x), found = compiled(x);
    BOOST_TEST(same_bits(expected, found));
    BOOST_TEST(same_bits(a.grad(), b.grad()));
    if (i % 5 == 3) Tensor(a).set_grad(Tensor()), Tensor(b).set_grad(Tensor());
    if (i % 5 == 4) Tensor(a).grad().mul_(0.5), Tensor(b).grad().mul_(0.5);
  }
  BOOST_TEST(says(compiled, "replayed"));
}

BOOST_AUTO_TEST_CASE(gradients_of_earlier_calls_keep_their_values) {
  const Tensor w = randn({3}).requires_grad_();
  auto compiled = compile([&](const Tensor& x) {
    Tensor(w).set_grad(Tensor());
    Tensor loss = (w * x).sum();
    loss.backward();
    return loss;
  });
  std::vector<Tensor> xs, grads;
  for (int i = 0; i < 8; ++i) {
    xs.push_back(randn({3}));
    compiled(xs.back());
    if (i % 2) grads.push_back(w.grad());
  }
  for (size_t i = 0; i < grads.size(); ++i) BOOST_TEST(same_bits(grads[i], xs[2 * i + 1]));
  BOOST_TEST(same_bits(w.grad(), xs.back()));
}

BOOST_AUTO_TEST_CASE(a_result_after_a_backward_pass_requires_a_gradient_as_always) {
  const Tensor w = randn({3}).requires_grad_();
  auto compiled = compile([&](const Tensor& x) {
    Tensor loss = (w * x).square().sum();
    loss.backward();
    return loss;
  });
  for (int i = 0; i < 5; ++i) {
    const Tensor loss = compiled(ones({3}));
    BOOST_TEST(loss.requires_grad());
    BOOST_CHECK_THROW(loss.backward(), AutogradError);
  }
}

BOOST_AUTO_TEST_CASE(an_argument_that_requires_a_gradient) {
  auto compiled = compile([](const Tensor& x) {
    Tensor loss = (x * x).sum();
    loss.backward();
    return loss;
  });
  const Tensor x = randn({3}).requires_grad_();
  for (int i = 0; i < 5; ++i) {
    Tensor(x).set_grad(Tensor());
    compiled(x);
    BOOST_TEST(same_bits(x.grad(), x.detach() * 2.0));
  }
  for (int i = 0; i < 4; ++i) {
    const Tensor y = randn({3}).requires_grad_();
    compiled(y);
    BOOST_TEST(same_bits(y.grad(), y.detach() * 2.0));
    BOOST_TEST(same_bits(x.grad(), x.detach() * 2.0));
  }
}

BOOST_AUTO_TEST_CASE(leaves_that_end_with_the_call_are_inside) {
  auto compiled = compile([](const Tensor& x) {
    const Tensor leaf = x.detach().requires_grad_();
    (leaf * leaf * leaf).sum().backward();
    return leaf.grad();
  });
  for (int i = 0; i < 5; ++i) {
    const Tensor x = randn({3});
    const Tensor leaf = x.clone().requires_grad_();
    (leaf * leaf * leaf).sum().backward();
    BOOST_TEST(same_bits(compiled(x), leaf.grad()));
  }
}

BOOST_AUTO_TEST_CASE(an_optimizer_that_ended_is_noticed) {
  Small net;
  auto optimizer = std::make_unique<optim::SGD>(net.parameters(), optim::SGDOptions{.lr = 0.1});
  auto compiled = compile([&](const Tensor& x) {
    optimizer->zero_grad();
    Tensor loss = net(x).square().sum();
    loss.backward();
    optimizer->step();
    return loss;
  });
  warm(compiled, noise);
  optimizer = std::make_unique<optim::SGD>(net.parameters(), optim::SGDOptions{.lr = 0.0});
  const Tensor before = net.fc.weight.detach().clone();
  warm(compiled, noise);
  BOOST_TEST(same_bits(net.fc.weight, before));
}

BOOST_AUTO_TEST_SUITE_END()
