// The engine: orders, sharing, and what it refuses. Gradient rules of operators are tested with the
// operators.
#include <cmath>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/dispatch/replica.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/tensor.h>

#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(autograd_test)

using namespace tenon;
using test::error_of;
using test::has;

namespace {
Tensor leaf(std::initializer_list<float> values) {
  Tensor t = tensor(values);
  t.requires_grad_();
  return t;
}
float first(const Tensor& t) { return t.to_vector<float>()[0]; }
}  // namespace

BOOST_AUTO_TEST_CASE(gradients_add_up_over_uses_and_over_calls) {
  Tensor x = leaf({2, 3});
  (x * x + x).sum().backward();
  BOOST_TEST(x.grad().to_vector<float>() == (std::vector<float>{5, 7}));
  (x * 10.0).sum().backward();
  BOOST_TEST(x.grad().to_vector<float>() == (std::vector<float>{15, 17}));
  x.set_grad(Tensor());
  BOOST_TEST(!x.grad().defined());
}

BOOST_AUTO_TEST_CASE(broadcasting_sums_the_gradient_back) {
  Tensor row = leaf({1, 2, 3}), column = full({2, 1}, 2);
  column.requires_grad_();
  (row * column).sum().backward();
  BOOST_TEST(row.grad().to_vector<float>() == (std::vector<float>{4, 4, 4}));
  BOOST_TEST((column.grad().shape() == Shape{2, 1}));
  BOOST_TEST(column.grad().to_vector<float>() == (std::vector<float>{6, 6}));
}

BOOST_AUTO_TEST_CASE(higher_orders) {
  Tensor x = leaf({2});
  Tensor y = pow(x, 4.0);
  Tensor d1 = grad(y, x, {.create_graph = true});
  Tensor d2 = grad(d1, x, {.create_graph = true});
  Tensor d3 = grad(d2, x, {.create_graph = true});
  Tensor d4 = grad(d3, x);
  BOOST_TEST(first(d1) == 32.0f);
  BOOST_TEST(first(d2) == 48.0f);
  BOOST_TEST(first(d3) == 48.0f);
  BOOST_TEST(first(d4) == 24.0f);
  BOOST_TEST(!x.grad().defined());  // grad() touches nobody's .grad
}

BOOST_AUTO_TEST_CASE(saved_outputs_keep_their_history_for_higher_orders) {
  Tensor x = leaf({0.5});
  Tensor s = sigmoid(x);
  Tensor d1 = grad(s, x, {.create_graph = true});
  Tensor d2 = grad(d1, x);
  const double v = 1 / (1 + std::exp(-0.5));
  BOOST_TEST(first(d1) == v * (1 - v), boost::test_tools::tolerance(1e-5));
  BOOST_TEST(first(d2) == v * (1 - v) * (1 - 2 * v), boost::test_tools::tolerance(1e-4));
}

BOOST_AUTO_TEST_CASE(backward_twice_is_refused_unless_the_graph_was_kept) {
  Tensor x = leaf({3});
  Tensor y = x * x;
  y.backward(Tensor(), {.retain_graph = true});
  y.backward();
  BOOST_TEST(first(x.grad()) == 12.0f);
  auto text = error_of<AutogradError>([&] { y.backward(); });
  BOOST_TEST(has(text, "backward through mul for a second time"), text);
  BOOST_TEST(has(text, "retain_graph"), text);
}

BOOST_AUTO_TEST_CASE(what_saves_nothing_can_be_gone_through_again) {
  Tensor x = leaf({3});
  Tensor y = -(x.view({1, 1}) + 1.0).sum();
  y.backward();
  y.backward();
  BOOST_TEST(first(x.grad()) == -2.0f);
  Tensor partly = (x * x).sum();
  partly.backward();
  BOOST_TEST(has(error_of<AutogradError>([&] { partly.backward(); }),
                 "backward through mul for a second time"));
  BOOST_TEST(first(x.grad()) == 4.0f);  // what failed added nothing
}

BOOST_AUTO_TEST_CASE(an_input_may_be_named_twice) {
  Tensor x = leaf({2}), h = x * 3.0, y = h * h;
  const Tensor inputs[] = {x, h, x, h};
  auto gradients = grad(std::span(&y, 1), inputs);
  BOOST_TEST(first(gradients[0]) == 36.0f);
  BOOST_TEST(first(gradients[1]) == 12.0f);
  BOOST_TEST(first(gradients[2]) == 36.0f);
  BOOST_TEST(first(gradients[3]) == 12.0f);
  // Parts from several devices are summed once.
  Tensor w = leaf({2});
  allow_replicas(w);
  Tensor z =
      (w * tensor({1})).sum() + (w * full({1}, 10, {.device = "cpu:1"})).sum().to(default_device());
  const Tensor twice[] = {w, w};
  for (auto& g : grad(std::span(&z, 1), twice)) BOOST_TEST(first(g) == 11.0f);
}

BOOST_AUTO_TEST_CASE(a_value_that_a_gradient_needs_must_not_change) {
  Tensor x = leaf({3}), factor = tensor({4});
  Tensor y = x * factor;
  factor.fill_(5);
  auto text = error_of<AutogradError>([&] { y.backward(); });
  BOOST_TEST(has(text, "mul: input 1 of shape (1,)"), text);
  BOOST_TEST(has(text, "changed in place"), text);
  // Through a view as well.
  Tensor pair = tensor({1, 2});
  Tensor z = x * pair;
  pair.narrow(0, 1, 1).fill_(7);
  BOOST_TEST(has(error_of<AutogradError>([&] { z.sum().backward(); }), "changed in place"));
}

BOOST_AUTO_TEST_CASE(leaves_that_require_a_gradient_change_under_no_grad_only) {
  Tensor x = leaf({3});
  BOOST_CHECK_THROW(x.fill_(1), AutogradError);
  BOOST_CHECK_THROW(x.copy_(tensor({2})), AutogradError);
  no_grad([&] { x.fill_(1); });
  BOOST_TEST(first(x) == 1.0f);
}

BOOST_AUTO_TEST_CASE(no_grad_records_nothing) {
  Tensor x = leaf({3});
  {
    NoGrad guard;
    BOOST_TEST(!(x * 2.0).requires_grad());
  }
  BOOST_TEST((x * 2.0).requires_grad());
  BOOST_TEST(!x.detach().requires_grad());
  BOOST_TEST(no_grad([&] { return x * 2.0; }).is_leaf());
}

BOOST_AUTO_TEST_CASE(what_cannot_be_differentiated_says_so) {
  Tensor x = leaf({1, 2});
  BOOST_TEST(has(error_of<AutogradError>([&] { (x * 1.0).backward(); }), "single element"));
  BOOST_TEST(
      has(error_of<AutogradError>([&] { tensor({1}).backward(); }), "does not require a gradient"));
  BOOST_CHECK_THROW((x * 1.0).backward(ones({3})), ShapeError);
  BOOST_CHECK_THROW((x * 1.0).backward(ones({2}, {.dtype = f64})), DTypeError);
  BOOST_CHECK_THROW(zeros({2}, {.dtype = i64}).requires_grad_(), DTypeError);
  BOOST_CHECK_THROW((x * 1.0).requires_grad_(), AutogradError);
  Tensor other = leaf({1});
  BOOST_TEST(has(error_of<AutogradError>([&] { grad(x.sum(), other); }), "was not used"));
  BOOST_TEST(!grad(x.sum(), other, {.allow_unused = true}).defined());
}

BOOST_AUTO_TEST_CASE(grad_of_values_inside_the_graph) {
  Tensor x = leaf({2}), h = x * 3.0, y = h * h;
  BOOST_TEST(first(grad(y, h, {.retain_graph = true})) == 12.0f);
  BOOST_TEST(first(grad(y, x)) == 36.0f);
}

BOOST_AUTO_TEST_CASE(a_chain_of_a_hundred_thousand_operators) {
  Tensor x = leaf({1}), y = x;
  for (int i = 0; i < 100000; ++i) y = y + 1.0;
  y.backward();
  BOOST_TEST(first(x.grad()) == 1.0f);
  Tensor never_differentiated = x;
  for (int i = 0; i < 100000; ++i) never_differentiated = never_differentiated + 1.0;
}

BOOST_AUTO_TEST_CASE(a_gradient_is_the_leafs_own) {
  Tensor a = leaf({1, 2}), b = leaf({3, 4});
  (a + b).sum().backward();
  a.grad().fill_(7);
  BOOST_TEST(first(b.grad()) == 1.0f);
  BOOST_TEST(a.grad().is_contiguous());
}

BOOST_AUTO_TEST_CASE(replicas_follow_their_primary_and_return_its_gradient) {
  const Device home = default_device();
  Tensor w = leaf({2, 4});
  allow_replicas(w);
  Tensor x0 = tensor({1, 1}), x1 = full({2}, 10, {.device = "cpu:1"}),
         x2 = full({2}, 100, {.device = "cpu:2"});
  Tensor loss = (w * x0).sum() + (w * x1).sum().to(home) + (w * x2).sum().to(home);
  loss.backward();
  BOOST_TEST((w.grad().device() == home));
  BOOST_TEST(w.grad().to_vector<float>() == (std::vector<float>{111, 111}));
  no_grad([&] { w.fill_(1); });
  BOOST_TEST(no_grad([&] { return (w * x1).sum().item(); }) == 20.0);
  {
    DeviceGuard on("cpu:1");
    BOOST_TEST((w * w).device().str() == "cpu:1");
  }
  BOOST_TEST(((w * w).device() == home));
  BOOST_CHECK_THROW(tensor({1, 1}) * x1, DeviceError);  // without replicas mixing is an error
}

BOOST_AUTO_TEST_CASE(gradient_rules_run_where_the_forward_call_ran) {
  Tensor w = leaf({0.5, 2}), twin = leaf({0.5, 2});
  allow_replicas(w);
  const Tensor x = tensor({3, 4});
  Tensor y;
  {
    DeviceGuard there("cpu:1");
    y = (x.to("cpu:1") * square(w)).sum();
  }
  BOOST_TEST(y.device().str() == "cpu:1");
  y.backward();  // under no guard, or another one
  (x * square(twin)).sum().backward();
  BOOST_TEST(w.grad().to_vector<float>() == twin.grad().to_vector<float>());
  {
    DeviceGuard elsewhere("cpu:2");
    (x * square(twin)).sum().backward();
  }
  BOOST_TEST(twin.grad().to_vector<float>() == (std::vector<float>{6, 32}));
  BOOST_CHECK_THROW((x * twin).backward(ones({2}, {.device = "cpu:1"})), DeviceError);
}

BOOST_AUTO_TEST_CASE(threads_have_graphs_of_their_own) {
  std::vector<std::thread> threads;
  std::vector<float> results(4);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&results, t] {
      Tensor x = leaf({static_cast<float>(t)});
      for (int i = 0; i < 200; ++i) {
        x.set_grad(Tensor());
        (x * x * x).backward();
      }
      results[t] = first(x.grad());
    });
  for (auto& t : threads) t.join();
  for (int t = 0; t < 4; ++t) BOOST_TEST(results[t] == 3.0f * t * t);
}

// Gradients that have a history are changed in place as well, by clip_grad_norm_ for one.
BOOST_AUTO_TEST_CASE(leaves_share_no_gradient_that_has_a_history) {
  Tensor x = leaf({1, 1}), y = leaf({1, 1}), seed = leaf({3, 3});
  (x + y).square().sum().backward({}, {.create_graph = true});
  BOOST_TEST(x.grad().requires_grad());
  {
    const NoGrad guard;
    x.grad().mul_(0.5);
  }
  BOOST_TEST(x.grad().to_vector<float>() == (std::vector<float>{2, 2}));
  BOOST_TEST(y.grad().to_vector<float>() == (std::vector<float>{4, 4}));
  x.set_grad(Tensor());
  x.backward(seed, {.create_graph = true});
  BOOST_TEST(!x.grad().is_same(seed));
  BOOST_TEST(grad(x.grad().sum(), seed).to_vector<float>() == (std::vector<float>{1, 1}));
  Tensor w = ones({2, 3}).requires_grad_(), v = ones({3, 2}).requires_grad_();
  (w.t() * v).square().sum().backward({}, {.create_graph = true});
  BOOST_TEST(w.grad().is_contiguous());
  // A gradient with a history refers to its leaf, which refers to it.
  for (Tensor* t : {&x, &y, &w, &v}) t->set_grad(Tensor());
}

BOOST_AUTO_TEST_CASE(a_leaf_that_was_frozen_gets_no_gradient) {
  Tensor x = leaf({1, 2}), y = leaf({3, 4});
  const Tensor product = (x * y).sum();
  x.requires_grad_(false);
  product.backward();
  BOOST_TEST(!x.grad().defined());
  BOOST_TEST(y.grad().to_vector<float>() == (std::vector<float>{1, 2}));
}

BOOST_AUTO_TEST_SUITE_END()
