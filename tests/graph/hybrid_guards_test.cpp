// What compiled functions with a history notice, refuse and survive.
#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "bits.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(hybrid_guards_test)

using namespace tenon;
using test::require_error;
using test::same_bits;
using test::says;

namespace {

struct Small : nn::Module<Small> {
  nn::Linear fc{3, 2};
  Tensor forward(const Tensor& x) { return tanh(fc(x)); }
};

Tensor noise(int64_t rows = 4) { return randn({rows, 3}); }

// Both give the same gradients of a module's parameters.
void require_alike(auto& fast, auto& net, const Tensor& x) {
  const auto p = nn::parameters(net);
  BOOST_TEST(same_bits(grad(std::vector{fast(x).sum()}, p), grad(std::vector{net(x).sum()}, p)));
}

// The function gives the same gradient of w as its compiled form, for some calls.
void require_alike(auto& fast, const auto& plain, const Tensor& w, const auto& make) {
  for (int i = 0; i < 6; ++i) {
    const Tensor x = make();
    BOOST_TEST(same_bits(grad(fast(x).sum(), w), grad(plain(x).sum(), w)));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(other_shapes_are_other_programs) {
  Small net;
  auto fast = compile(net);
  for (int round = 0; round < 2; ++round)
    for (const int64_t rows : {4, 7, 1})
      for (int i = 0; i < 5; ++i) require_alike(fast, net, noise(rows));
  BOOST_TEST(says(fast, "3 programs made"));
}

BOOST_AUTO_TEST_CASE(replaced_frozen_and_converted_parameters_count_at_once) {
  Small net;
  auto fast = compile(net);
  const auto check = [&] {
    for (int i = 0; i < 5; ++i) require_alike(fast, net, noise());
  };
  check();
  net.fc = nn::Linear(3, 2);
  check();
  net.fc.weight = nn::Parameter(randn({2, 3}));
  check();
  no_grad([&] { net.fc.weight.mul_(2.0); });
  check();
  load_state_dict(net, nn::state_dict(Small()));
  check();
  net.fc.bias.requires_grad_(false);
  for (int i = 0; i < 5; ++i) {
    const Tensor x = noise(), w = net.fc.weight;
    const Tensor loss = fast(x).sum();
    loss.backward();
    BOOST_TEST(!net.fc.bias.grad().defined());
    BOOST_TEST(same_bits(w.grad(), grad(net(x).sum(), w)));
    net.zero_grad();
  }
  net.fc.bias.requires_grad_();
  net.to(f64);
  for (int i = 0; i < 5; ++i) require_alike(fast, net, randn({4, 3}, {.dtype = f64}));
}

BOOST_AUTO_TEST_CASE(a_model_that_moved_to_another_device_is_compiled_there) {
  Small net;
  auto fast = compile(net);
  for (int i = 0; i < 5; ++i) require_alike(fast, net, noise());
  const Tensor x = noise();
  const Tensor before = fast(x).sum();
  const char* other = default_device() == Device("cpu:1") ? "cpu:0" : "cpu:1";
  net.to(other);
  require_error<DeviceError>([&] { fast(x); }, other);
  for (int i = 0; i < 5; ++i) require_alike(fast, net, noise().to(other));
}

BOOST_AUTO_TEST_CASE(the_precision_of_products_counts_at_once) {
  Small net;
  auto fast = compile(net);
  for (const char* precision : {"highest", "high", "highest"}) {
    set_float32_matmul_precision(precision);
    for (int i = 0; i < 5; ++i) require_alike(fast, net, noise());
  }
}

BOOST_AUTO_TEST_CASE(one_leaf_as_an_argument_each_time_and_then_another) {
  const auto plain = [](const Tensor& x, const Tensor& y) { return (x * y).sum(); };
  auto fast = compile(plain);
  const Tensor w = randn({3}).requires_grad_(), v = randn({3}).requires_grad_();
  for (int i = 0; i < 6; ++i) {
    const Tensor x = randn({3});
    BOOST_TEST(same_bits(grad(fast(x, w), w), x));
  }
  for (int i = 0; i < 6; ++i) {
    const Tensor x = randn({3});
    BOOST_TEST(same_bits(grad(fast(x, v), v), x));
    BOOST_TEST(same_bits(grad(fast(x, w), w), x));
  }
}

BOOST_AUTO_TEST_CASE(one_tensor_as_two_arguments_is_not_two) {
  auto fast = compile([](const Tensor& x, const Tensor& y) { return (x * y * y).sum(); });
  const auto check = [&](const Tensor& x, const Tensor& y) {
    const auto inputs = x.is_same(y) ? std::vector{x} : std::vector{x, y};
    BOOST_TEST(same_bits(grad(std::vector{fast(x, y)}, inputs),
                         grad(std::vector{(x * y * y).sum()}, inputs)));
  };
  const auto leaf = [] { return randn({3}).requires_grad_(); };
  for (int i = 0; i < 5; ++i) check(leaf(), leaf());
  for (int i = 0; i < 5; ++i) {
    const Tensor x = leaf();
    check(x, x);
  }
  for (int i = 0; i < 5; ++i) check(leaf(), leaf());
}

BOOST_AUTO_TEST_CASE(a_parameter_of_the_function_that_is_an_argument_too) {
  const Tensor w = randn({3}).requires_grad_();
  const auto plain = [&](const Tensor& x) { return (x * w).sum(); };
  auto fast = compile(plain);
  for (int i = 0; i < 5; ++i) {
    const Tensor x = randn({3}).requires_grad_();
    BOOST_TEST(same_bits(grad(std::vector{fast(x)}, std::vector{x, w}),
                         grad(std::vector{plain(x)}, std::vector{x, w})));
  }
  for (int i = 0; i < 3; ++i) BOOST_TEST(same_bits(grad(fast(w), w), grad(plain(w), w)));
}

BOOST_AUTO_TEST_CASE(exceptions_inside_leave_everything_as_it_would_be) {
  Small net;
  bool fails = true;
  auto fast = compile([&](const Tensor& x) {
    const Tensor y = net(x);
    if (fails) throw std::runtime_error("stop");
    return y;
  });
  for (int i = 0; i < 3; ++i) BOOST_CHECK_THROW(fast(noise()), std::runtime_error);
  fails = false;
  for (int i = 0; i < 5; ++i) require_alike(fast, net, noise());
  require_error<ShapeError>([&] { fast(randn({4, 5})); }, "last dimension is 5");
  for (int i = 0; i < 5; ++i) require_alike(fast, net, noise());
  BOOST_TEST(says(fast, "1 programs made"));
}

BOOST_AUTO_TEST_CASE(threads_take_turns_with_gradients_as_well) {
  const Tensor w = full({3}, 2.0).requires_grad_();
  auto fast = compile([&](const Tensor& x) { return (x * w * w).sum(); });
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 30; ++i)
        if (grad(fast(full({3}, t, {.device = w.device()})), w).sum().item() != 12.0 * t) ++wrong;
    });
  for (auto& thread : threads) thread.join();
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_CASE(a_graph_outlives_what_made_it) {
  auto net = std::make_unique<Small>();
  const Tensor x = noise(), w = net->fc.weight;
  std::optional<CompiledModule<Small>> fast(compile(*net));
  for (int i = 0; i < 5; ++i) require_alike(*fast, *net, x);
  const Tensor expected = grad(net->operator()(x).sum(), w), loss = (*fast)(x).sum();
  auto moved = std::move(*fast);
  const Tensor later = moved(x).sum();
  moved.reset();
  fast.reset();
  net.reset();
  BOOST_TEST(same_bits(grad(loss, w, {.retain_graph = true}), expected));
  BOOST_TEST(same_bits(grad(loss, w), expected));
  BOOST_TEST(same_bits(grad(later, w), expected));
}

BOOST_AUTO_TEST_CASE(a_copy_of_a_module_is_not_the_compiled_one) {
  Small net;
  auto fast = compile(net);
  for (int i = 0; i < 5; ++i) require_alike(fast, net, noise());
  Small other = nn::clone(net);
  auto fast_other = compile(other);
  no_grad([&] { other.fc.weight.mul_(2.0); });
  for (int i = 0; i < 5; ++i) {
    require_alike(fast, net, noise());
    require_alike(fast_other, other, noise());
  }
}

BOOST_AUTO_TEST_CASE(inside_another_compiled_function_it_is_a_part_of_that) {
  Small net;
  auto fast = compile(net);
  for (int i = 0; i < 5; ++i) fast(noise()).sum().backward();
  auto step = compile([&](const Tensor& x) {
    net.zero_grad();
    const Tensor loss = fast(x).sum();
    loss.backward();
    return loss;
  });
  for (int i = 0; i < 5; ++i) {
    const Tensor x = noise();
    step(x);
    BOOST_TEST(same_bits(net.fc.weight.grad(), grad(net(x).sum(), net.fc.weight)));
  }
  BOOST_TEST(says(step, "replayed 3 times"));
}

BOOST_AUTO_TEST_CASE(what_a_custom_function_saves_is_compared) {
  struct Scale : autograd::Function<Scale> {
    static Tensor forward(autograd::Context& context, const Tensor& x, double factor) {
      context.save("factor", factor);
      return x * 2.0;
    }
    static std::vector<Tensor> backward(autograd::Context& context, std::span<const Tensor> grads) {
      return {grads[0] * context.get<double>("factor"), Tensor()};
    }
  };
  const Tensor w = randn({3}).requires_grad_();
  double factor = 3;
  const auto plain = [&](const Tensor& x) { return Scale::apply(x * w, factor); };
  auto fast = compile(plain);
  require_alike(fast, plain, w, [] { return randn({3}); });
  BOOST_TEST(says(fast, "replayed 4 times"));
  auto changing = compile([&](const Tensor& x) { return Scale::apply(x * w, factor += 1); });
  changing(randn({3}));
  require_error<ValueError>([&] { changing(randn({3})); }, "\"factor\", which Scale saves",
                            "pass it as a tensor");
}

BOOST_AUTO_TEST_CASE(what_has_no_program_runs_as_always_and_says_why) {
  const Tensor w = randn({3}).requires_grad_(), h = (w * 2.0).detach().requires_grad_();
  const Tensor with_history = h * 3.0;
  const auto make = [] { return randn({3}); };
  const auto outside = [&](const Tensor& x) { return x * w * with_history.detach(); };
  const auto checkpointed = [&](const Tensor& x) {
    return checkpoint([&](const Tensor& a) { return exp(a * w); }, x) * w;
  };
  const auto hooked = [&](const Tensor& x) {
    Tensor y = x * w;
    register_hook(y, [](const Tensor& g) { return g * 2.0; });
    return y * y;
  };
  auto captures = compile([&](const Tensor& x) { return x * with_history; });
  auto fast_checkpointed = compile(checkpointed);
  auto fast_hooked = compile(hooked);
  auto fast_outside = compile(outside);
  require_alike(fast_outside, outside, w, make);
  require_alike(fast_checkpointed, checkpointed, w, make);
  require_alike(fast_hooked, hooked, w, make);
  for (int i = 0; i < 4; ++i) {
    const Tensor x = make();
    BOOST_TEST(same_bits(grad(captures(x).sum(), h, {.retain_graph = true}), x * 3.0));
  }
  BOOST_TEST(says(captures, "a tensor from outside that has a history; pass that as an argument"));
  BOOST_TEST(says(fast_checkpointed, "a gradient checkpoint is inside"));
  BOOST_TEST(says(fast_hooked, "has a hook"));
  auto in_place = compile([&](Tensor x) { return x.mul_(w), x.sum(); });
  for (int i = 0; i < 4; ++i) BOOST_TEST(same_bits(grad(in_place(ones({3})), w), ones({3})));
  BOOST_TEST(says(in_place, "is changed in place and gets a history"));
  Tensor total = zeros({3});
  auto sums_up = compile([&](const Tensor& x) { return total.add_(x * w), x + 1.0; });
  for (int i = 0; i < 4; ++i) sums_up(ones({3}));
  BOOST_TEST(same_bits(grad(total.sum(), w), full({3}, 4.0)));
  BOOST_TEST(says(sums_up, "is changed in place and gets a history"));
  auto steps = compile([&](const Tensor& x) {
    Tensor loss = (x * h).sum();
    loss.backward();
    return loss.detach();
  });
  for (int i = 0; i < 3; ++i) steps(w * 1.0);
  BOOST_TEST(says(steps, "an argument has a history, and a backward pass is inside"));
}

BOOST_AUTO_TEST_CASE(scalers_and_schedules_work_around_a_compiled_module) {
  manual_seed(3);
  Small a;
  Small b = nn::clone(a);
  auto fast = compile(b);
  optim::SGD of_a(a.parameters(), {.lr = 0.1}), of_b(b.parameters(), {.lr = 0.1});
  optim::StepLR schedule_a(of_a, 3), schedule_b(of_b, 3);
  amp::GradScaler scaler_a, scaler_b;
  const auto step = [](auto& model, optim::Optimizer& optimizer, amp::GradScaler& scaler,
                       optim::StepLR& schedule, const Tensor& x) {
    optimizer.zero_grad();
    scaler.scale(model(x).sum()).backward();
    scaler.step(optimizer);
    scaler.update();
    schedule.step();
  };
  for (int i = 0; i < 8; ++i) {
    const Tensor x = noise();
    step(a, of_a, scaler_a, schedule_a, x);
    step(fast, of_b, scaler_b, schedule_b, x);
    BOOST_TEST(same_bits(a.parameters(), b.parameters()));
  }
  BOOST_TEST(says(fast, "replayed 6 times"));
}

BOOST_AUTO_TEST_CASE(scalers_and_schedules_inside_say_why_there_is_no_program) {
  Small net;
  optim::SGD optimizer(net.parameters(), {.lr = 0.1});
  optim::StepLR schedule(optimizer, 2);
  amp::GradScaler scaler;
  auto scaled = compile([&](const Tensor& x) {
    optimizer.zero_grad();
    scaler.scale(net(x).sum()).backward();
    scaler.step(optimizer);
    scaler.update();
  });
  auto scheduled = compile([&](const Tensor& x) {
    optimizer.zero_grad();
    net(x).sum().backward();
    optimizer.step();
    schedule.step();
  });
  for (int i = 0; i < 4; ++i) scaled(noise()), scheduled(noise());
  BOOST_TEST(says(scaled, "a GradScaler decides by values"));
  BOOST_TEST(says(scheduled, "a learning rate is set"));
  BOOST_TEST(optimizer.lr() == 0.1 * 0.1 * 0.1, boost::test_tools::tolerance(1e-12));
}

namespace {

// Gradients with noise, as for Langevin dynamics, or by numbers that begin anew in each step.
struct NoisySGD : optim::SGD {
  using optim::SGD::SGD;
  bool only_seeds = false;
  void step() override {
    const Replayed whole(*this);
    const NoGrad guard;
    if (only_seeds) manual_seed(7);
    for (auto& p : params(0))
      if (!only_seeds) p.grad().add_(randn(p.shape()));
    optim::SGD::step();
  }
};

}  // namespace

// Their order among the others has to stay.
BOOST_AUTO_TEST_CASE(random_numbers_of_a_step_are_those_of_a_plain_call) {
  std::vector<Tensor> found, others;
  for (const int way : {0, 1, 2, 3}) {
    const bool compiles = way % 2;
    manual_seed(5);
    Tensor w = ones({3}).requires_grad_(), other;
    NoisySGD optimizer({w}, {.lr = 0.1});
    optimizer.only_seeds = way >= 2;
    const auto body = [&](const Tensor& x) {
      optimizer.zero_grad();
      (w * x * rand({3})).sum().backward();
      optimizer.step();
      return w * rand({3});
    };
    auto step = compile(body);
    for (int i = 0; i < 6; ++i) other = compiles ? step(ones({3})) : body(ones({3}));
    if (compiles) BOOST_TEST(says(step, "the step of an optimizer draws random numbers"));
    found.push_back(w);
    others.push_back(other);
  }
  for (const size_t i : {0, 2}) {
    BOOST_TEST(same_bits(found[i], found[i + 1]));
    BOOST_TEST(same_bits(others[i], others[i + 1]));
  }
}

BOOST_AUTO_TEST_SUITE_END()
