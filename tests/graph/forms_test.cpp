// The many forms that a training step may have, and what happens to it when work fails or the
// process forks.
#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include <boost/test/unit_test.hpp>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/tenon.h>

#include "bits.h"
#include "support/drain.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(forms_test)

using namespace tenon;
using test::same_bits;
using test::says;

namespace {

struct Net : nn::Module<Net> {
  nn::Linear fc1{6, 5}, fc2{5, 3};
  Tensor forward(const Tensor& x) { return fc2(relu(fc1(x))); }
};
using Step = std::function<Tensor(Net&, optim::Optimizer&, const Tensor&, const Tensor&)>;

bool same_models(Net& a, Net& b) {
  const auto p = a.parameters(), q = b.parameters();
  bool same = same_bits(p, q);
  for (size_t i = 0; i < p.size(); ++i)
    same = same && same_bits(p[i].grad(), q[i].grad()) && p[i].version() == q[i].version();
  return same;
}

// Two models that begin alike make the same steps, one of them compiled.
Net seeded() {
  manual_seed(1);
  return Net();
}
struct Twins {
  Net a = seeded(), b = seeded();
  optim::Adam adam_a{a.parameters(), {.lr = 0.01}}, adam_b{b.parameters(), {.lr = 0.01}};
};

void require_same(const Step& step) {
  Twins t;
  auto compiled =
      compile([&](const Tensor& x, const Tensor& y) { return step(t.b, t.adam_b, x, y); });
  for (int i = 0; i < 8; ++i) {
    const Tensor x = randn({4, 6}), y = randint(0, 3, {4});
    const Tensor expected = step(t.a, t.adam_a, x, y);
    BOOST_TEST(same_bits(compiled(x, y), expected));
    BOOST_TEST(same_models(t.a, t.b));
  }
  BOOST_TEST(says(compiled, "replayed"));
}

Tensor loss_of(Net& net, const Tensor& x, const Tensor& y) { return cross_entropy(net(x), y); }

Tensor usual_step(Net& net, optim::Optimizer& optimizer, const Tensor& x, const Tensor& y) {
  optimizer.zero_grad();
  Tensor loss = loss_of(net, x, y);
  loss.backward();
  optimizer.step();
  return loss;
}

}  // namespace

BOOST_AUTO_TEST_CASE(gradients_dropped_at_the_end) {
  require_same([](Net& net, optim::Optimizer& optimizer, const Tensor& x, const Tensor& y) {
    Tensor loss = loss_of(net, x, y);
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    return loss;
  });
}

BOOST_AUTO_TEST_CASE(gradients_set_to_zero) {
  require_same([](Net& net, optim::Optimizer& optimizer, const Tensor& x, const Tensor& y) {
    optimizer.zero_grad(false);
    Tensor loss = loss_of(net, x, y);
    loss.backward();
    optimizer.step();
    return loss;
  });
}

BOOST_AUTO_TEST_CASE(several_passes_and_several_steps_in_one_call) {
  require_same([](Net& net, optim::Optimizer& optimizer, const Tensor& x, const Tensor& y) {
    for (int k = 0; k < 2; ++k) {
      optimizer.zero_grad();
      for (int i = 0; i < 2; ++i) loss_of(net, x, y).backward();
      optimizer.step();
    }
    return Tensor();
  });
}

BOOST_AUTO_TEST_CASE(a_part_that_does_not_learn) {
  require_same([](Net& net, optim::Optimizer& optimizer, const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    net.fc1.weight.requires_grad_(false);
    Tensor loss = loss_of(net, x, y);
    loss.backward();
    net.fc1.weight.requires_grad_(true);
    optimizer.step();
    return loss;
  });
}

BOOST_AUTO_TEST_CASE(a_gradient_that_is_returned_and_changed) {
  require_same([](Net& net, optim::Optimizer& optimizer, const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    loss_of(net, x, y).backward();
    no_grad([&] {
      for (auto& p : net.parameters()) p.grad().mul_(0.5);
    });
    optimizer.step();
    return net.fc2.bias.grad();
  });
}

BOOST_AUTO_TEST_CASE(a_gradient_of_a_gradient) {
  require_same([](Net& net, optim::Optimizer& optimizer, const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    const Tensor input = x.detach().requires_grad_();
    const Tensor loss = loss_of(net, input, y);
    const Tensor slope = grad(loss, input, {.create_graph = true});
    (loss + slope.square().sum()).backward();
    optimizer.step();
    return loss.detach();
  });
}

BOOST_AUTO_TEST_CASE(a_step_that_fails_does_not_happen) {
  if (default_device() != Device()) return;  // others cannot say which values a failure affected
  Twins t;
  auto compiled =
      compile([&](const Tensor& x, const Tensor& y) { return usual_step(t.b, t.adam_b, x, y); });
  for (int i = 0; i < 8; ++i) {
    const Tensor x = randn({4, 6});
    const Tensor y = i == 5 ? full({4}, 7, {.dtype = i64}) : randint(0, 3, {4});
    const Tensor expected = usual_step(t.a, t.adam_a, x, y), found = compiled(x, y);
    const auto text = tenon::test::error_of([&] { expected.item(); });
    BOOST_TEST(text == tenon::test::error_of([&] { found.item(); }));
    BOOST_TEST(text.empty() == (i != 5));
    BOOST_TEST(same_bits(t.a.parameters(), t.b.parameters()));
    BOOST_TEST(tenon::test::error_of([&] { t.a.fc1.bias.grad().to_vector<float>(); }) ==
               tenon::test::error_of([&] { t.b.fc1.bias.grad().to_vector<float>(); }));
  }
  test::drain();
}

BOOST_AUTO_TEST_CASE(a_child_process_goes_on_with_the_program) {
  if (default_device() != Device()) return;
  Twins t;
  auto compiled =
      compile([&](const Tensor& x, const Tensor& y) { return usual_step(t.b, t.adam_b, x, y); });
  const Tensor x = randn({4, 6}), y = randint(0, 3, {4});
  for (int i = 0; i < 4; ++i) usual_step(t.a, t.adam_a, x, y), compiled(x, y);
  const pid_t child = fork();
  if (child == 0) {
    const Tensor expected = usual_step(t.a, t.adam_a, x, y), found = compiled(x, y);
    _exit(same_bits(expected, found) && same_models(t.a, t.b) ? 0 : 1);
  }
  int status = -1;
  BOOST_REQUIRE(waitpid(child, &status, 0) == child);
  BOOST_TEST(status == 0);
}

namespace {
std::atomic<bool> forks{false};
}

// The older function is called by the newer one, which runs itself, because anomalies are looked
// for. The fork comes meanwhile.
BOOST_AUTO_TEST_CASE(a_fork_waits_for_functions_that_call_one_another) {
  if (default_device() != Device()) return;
  auto inner = compile([](const Tensor& x) { return x * 2.0; });
  std::atomic<bool> begun{false};
  auto outer = compile([&](const Tensor& x) {
    begun = true;
    while (!forks) std::this_thread::yield();
    Tensor y;
    for (int i = 0; i < 200; ++i) y = inner(x);
    return y;
  });
  const Tensor x = randn({4, 6}), expected = x * 2.0;
  std::thread caller([&] {
    const DetectAnomaly guard;
    outer(x);
  });
  while (!begun) std::this_thread::yield();
  pthread_atfork([] { forks = true; }, nullptr, nullptr);  // called before those of the library
  const pid_t child = fork();
  if (child == 0) _exit(same_bits(outer(x), expected) && same_bits(inner(x), expected) ? 0 : 1);
  caller.join();
  int status = -1;
  BOOST_REQUIRE(waitpid(child, &status, 0) == child);
  BOOST_TEST(status == 0);
}

BOOST_AUTO_TEST_CASE(parts_and_parameters_are_arguments) {
  const nn::Linear layer(3, 3);
  const Tensor x = randn({4, 3});
  auto twice = compile([](const Tensor& a) { return a * 2.0; });
  for (int i = 0; i < 4; ++i) {
    BOOST_TEST(same_bits(twice(x(i)), x[i] * 2.0));
    BOOST_TEST(same_bits(twice(layer.weight), layer.weight * 2.0));
  }
  auto sum = compile([](const Tensor& a, const Tensor& b) { return a + b; });
  BOOST_TEST(same_bits(sum(x, layer.weight(0)), x + layer.weight[0]));
}

BOOST_AUTO_TEST_SUITE_END()
