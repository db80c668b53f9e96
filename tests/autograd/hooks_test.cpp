// Hooks of tensors, gradients that are kept, and the search for NaN.
#include <limits>
#include <stdexcept>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/core/autograd/anomaly.h>
#include <tenon/core/autograd/autograd.h>
#include <tenon/core/autograd/hooks.h>
#include <tenon/core/base/module_path.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/shape.h>

#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(hooks_test)

using namespace tenon;
using test::require_error;

namespace {
using Floats = std::vector<float>;
Tensor leaf(std::initializer_list<float> values) { return tensor(values).requires_grad_(); }
Floats values(const Tensor& t) { return t.to_vector<float>(); }
}  // namespace

BOOST_AUTO_TEST_CASE(a_hook_of_a_leaf_sees_the_whole_gradient_once) {
  Tensor x = leaf({2, 3});
  int calls = 0;
  HookHandle handle = x.register_hook([&](const Tensor& g) {
    ++calls;
    BOOST_TEST(values(g) == (Floats{5, 7}));
  });
  auto run = [&] { (x * x + x).sum().backward(); };
  run();
  BOOST_TEST(calls == 1);
  BOOST_TEST(values(x.grad()) == (Floats{5, 7}));
  run();  // what was added up before is no part of it
  BOOST_TEST(calls == 2);
  handle.remove();
  handle.remove();
  run();
  BOOST_TEST(calls == 2);
  BOOST_TEST(values(x.grad()) == (Floats{15, 21}));
}

BOOST_AUTO_TEST_CASE(hooks_replace_gradients_in_their_order) {
  Tensor x = leaf({1, 1}), y = x * 3;
  y.register_hook([](const Tensor& g) { return g * 2; });
  y.register_hook([](const Tensor& g) { return g + 1; });
  x.register_hook([](const Tensor& g) { return neg(g); });
  Tensor z = y.sum();
  BOOST_TEST(values(grad(z, y, {.retain_graph = true})) == (Floats{3, 3}));
  BOOST_TEST(values(grad(z, x, {.retain_graph = true})) == (Floats{-9, -9}));
  z.backward();
  BOOST_TEST(values(x.grad()) == (Floats{-9, -9}));
}

// What a hook computes in a recorded pass has a gradient.
BOOST_AUTO_TEST_CASE(hooks_are_recorded_where_the_pass_is) {
  Tensor x = leaf({3});
  x.register_hook([&](const Tensor& g) { return g * x; });
  Tensor first = grad((x * x).sum(), x, {.create_graph = true});
  BOOST_TEST(values(first.detach()) == (Floats{18}));
  BOOST_TEST(values(grad(first.sum(), x)) == (Floats{36}));  // d(2x x) = 4x, by x of the hook 12 x
}

BOOST_AUTO_TEST_CASE(hooks_outlive_the_handle_of_the_tensor) {
  Tensor x = leaf({1});
  int calls = 0;
  Tensor z;
  HookHandle handle;
  {
    Tensor y = x * 2;
    handle = y.register_hook([&](const Tensor&) { ++calls; });
    z = (y * 3).sum();
  }
  z.backward(Tensor(), {.retain_graph = true});
  BOOST_TEST(calls == 1);
  handle.remove();
  z.backward();
  BOOST_TEST(calls == 1);
  z = Tensor();
  handle.remove();
  HookHandle().remove();
}

BOOST_AUTO_TEST_CASE(a_hook_may_remove_itself_and_add_others) {
  Tensor x = leaf({1});
  int first = 0, second = 0;
  HookHandle handle;
  handle = x.register_hook([&](const Tensor&) {
    ++first;
    x.register_hook([&](const Tensor&) { ++second; });
    handle.remove();
  });
  (x * 1).backward();
  BOOST_TEST(first == 1);
  BOOST_TEST(second == 0);
  (x * 1).backward();
  BOOST_TEST(first == 1);
  BOOST_TEST(second == 1);
}

BOOST_AUTO_TEST_CASE(hooks_run_on_the_thread_of_the_pass) {
  Tensor x = leaf({1});
  std::thread::id on;
  x.register_hook([&](const Tensor&) { on = std::this_thread::get_id(); });
  std::thread::id expected;
  std::thread other([&] {
    expected = std::this_thread::get_id();
    (x * 2).backward();
  });
  other.join();
  BOOST_CHECK(on == expected);
}

BOOST_AUTO_TEST_CASE(what_hooks_must_not_do) {
  Tensor x = leaf({1, 2});
  require_error<AutogradError>([] { ones({2}).register_hook([](const Tensor&) {}); },
                               "register_hook: the tensor of shape (2,) requires no gradient");
  require_error<ValueError>([] { Tensor().register_hook([](const Tensor&) {}); }, "register_hook");
  require_error<ValueError>([&] { register_hook(x, GradientHook()); }, "an empty function");
  HookHandle handle = x.register_hook([](const Tensor& g) { return g.sum(); });
  require_error<ShapeError>(
      [&] { (x * 2).sum().backward(); },
      "register_hook: what the hook returned has shape (), the gradient (2,)");
  handle.remove();
  handle = x.register_hook([](const Tensor& g) { return g.to(f64); });
  require_error<DTypeError>([&] { (x * 2).sum().backward(); }, "is f64, the gradient f32");
  handle.remove();
  x.register_hook([](const Tensor&) { throw std::out_of_range("mine"); });
  require_error<std::out_of_range>([&] { (x * 2).sum().backward(); }, "mine");
  BOOST_TEST(!x.grad().defined());
}

BOOST_AUTO_TEST_CASE(gradients_that_are_kept) {
  Tensor x = leaf({1, 2}), y = x * 3, z = y * y;
  y.retain_grad();
  y.retain_grad();
  y.register_hook([](const Tensor& g) { return g * 10; });
  z.sum().backward(Tensor(), {.retain_graph = true});
  BOOST_TEST(values(y.grad()) == (Floats{60, 120}));  // as the hooks left it
  z.sum().backward();
  BOOST_TEST(values(y.grad()) == (Floats{120, 240}));
  BOOST_TEST(!z.grad().defined());
  y.set_grad(Tensor());
  BOOST_TEST(!y.grad().defined());
  x.retain_grad();  // a leaf keeps it anyway
  BOOST_TEST(values(grad((x * 2).sum(), x)) == (Floats{2, 2}));
  require_error<AutogradError>([] { ones({1}).retain_grad(); }, "retain_grad: the tensor");
  // A change in place makes another value, whose gradient it is from then on.
  Tensor w = x * 1;
  w.retain_grad();
  w *= 4;
  (w * 5).sum().backward();
  BOOST_TEST(values(w.grad()) == (Floats{5, 5}));
}

BOOST_AUTO_TEST_CASE(kept_gradients_belong_to_one_tensor_each) {
  Tensor x = leaf({1, 2}), a = x * 3, b = x * 4;
  a.retain_grad();
  b.retain_grad();
  (a + b).sum().backward();
  a.grad().mul_(2);
  BOOST_TEST(values(a.grad()) == (Floats{2, 2}));
  BOOST_TEST(values(b.grad()) == (Floats{1, 1}));
}

BOOST_AUTO_TEST_CASE(a_hook_that_ends_the_pass_leaves_all_gradients_as_they_were) {
  Tensor x = leaf({1, 2}), y = leaf({3, 4});
  bool fails = true;
  const auto hook = [&](const Tensor& g) {
    if (fails) throw std::out_of_range("mine");
    return g;
  };
  const auto of_x = x.register_hook(hook);
  require_error<std::out_of_range>([&] { (x * y).sum().backward(); }, "mine");
  BOOST_TEST(!y.grad().defined());
  require_error<std::out_of_range>([&] { (y * x).sum().backward(); }, "mine");
  BOOST_TEST(!y.grad().defined());
  fails = false;
  (x * y).sum().backward();
  BOOST_TEST(values(y.grad()) == (Floats{1, 2}));
}

BOOST_AUTO_TEST_CASE(the_first_nan_is_found) {
  Tensor x = leaf({0, 4});
  auto run = [&] {
    const ModulePath net("Net"), layer("fc1");
    (sqrt(x) * tensor({0, 1})).sum().backward();  // 0 times the infinite slope at 0
  };
  run();
  {
    const DetectAnomaly guard;
    BOOST_TEST(detects_anomaly());
    require_error<AutogradError>(
        run,
        "detect_anomaly: the gradient of sqrt for its input 0 has a NaN; the forward call was "
        "sqrt(f32 (2,)) (in module Net.fc1)");
    {
      const DetectAnomaly off(false);
      run();
    }
    x.set_grad(Tensor());
    (x * x).sum().backward();
    BOOST_TEST(values(x.grad()) == (Floats{0, 8}));
    const Tensor bad = full({2}, std::numeric_limits<float>::quiet_NaN());
    require_error<AutogradError>([&] { (x * 2).backward(bad); }, "of mul for its input 0",
                                 "has one already");
  }
  BOOST_TEST(!detects_anomaly());
  run();
}

// What a hook returns ends with its pass, and its deleter may ask for gradients.
BOOST_AUTO_TEST_CASE(the_deleter_of_a_gradient_reads_gradients) {
  float memory[] = {1, 2};
  Tensor x = leaf({1, 2});
  int deleted = 0;
  x.register_hook([&](const Tensor&) {
    return from_blob(memory, {2}, f32, [&](void*) { deleted += x.grad().defined(); });
  });
  (x * 2).sum().backward();
  (x * 2).sum().backward();
  synchronize();
  BOOST_TEST(values(x.grad()) == (Floats{2, 4}));
  BOOST_TEST(deleted == 2);
}

BOOST_AUTO_TEST_CASE(kept_gradients_with_a_history_are_tensors_of_their_own) {
  Tensor x = leaf({1, 2}), a = x * 2, b = x * 3;
  a.retain_grad();
  b.retain_grad();
  (a + b).sum().backward({}, {.create_graph = true});
  BOOST_TEST(!a.grad().is_same(b.grad()));
  const NoGrad guard;
  a.grad().mul_(5);
  BOOST_TEST(values(b.grad()) == (Floats{1, 1}));
}

BOOST_AUTO_TEST_SUITE_END()
