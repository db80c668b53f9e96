// Functions with a gradient of their own.
#include <array>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/autograd/function.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/shape.h>

#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(function_test)

using namespace tenon;
using autograd::Context;
using test::require_error;
using Grads = std::span<const Tensor>;
using Tensors = std::vector<Tensor>;

namespace {

using Doubles = std::vector<double>;
Tensor leaf(std::initializer_list<float> values) { return tensor(values).to(f64).requires_grad_(); }
Doubles values(const Tensor& t) { return t.to_vector<double>(); }

struct Cube : autograd::Function<Cube> {
  static Tensor forward(Context& context, const Tensor& x, double scale) {
    BOOST_TEST(context.needs_input_grad(0));
    BOOST_TEST(!context.needs_input_grad(1));
    context.save_for_backward({x});
    context.save("scale", scale);
    return scale * x * x * x;
  }
  static Tensors backward(Context& context, Grads grads) {
    const Tensor& x = context.saved_tensors()[0];
    return {grads[0] * (3 * context.get<double>("scale")) * x * x, Tensor()};
  }
};

// Its gradient reads its result.
struct Exp : autograd::Function<Exp> {
  static Tensor forward(Context& context, const Tensor& x) {
    Tensor y = exp(x);
    context.save_for_backward({y, Tensor(), y});
    return y;
  }
  static Tensor backward(Context& context, Grads grads) {
    BOOST_TEST(!context.saved_tensors()[1].defined());
    return grads[0] * context.saved_tensors()[2];
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(gradients_of_every_order_are_those_of_the_rule) {
  Tensor x = leaf({2, -1});
  Tensor y = Cube::apply(x, 2.0);
  BOOST_TEST(values(y.detach()) == (Doubles{16, -2}));
  BOOST_TEST(y.str().find("grad_fn=<Cube>") != std::string::npos);
  Tensor first = grad(y.sum(), x, {.create_graph = true});
  BOOST_TEST(values(first.detach()) == (Doubles{24, 6}));
  Tensor second = grad(first.sum(), x, {.create_graph = true});
  BOOST_TEST(values(second.detach()) == (Doubles{24, -12}));
  BOOST_TEST(values(grad(second.sum(), x)) == (Doubles{12, 12}));
  y.sum().backward();
  BOOST_TEST(values(x.grad()) == (Doubles{24, 6}));
}

BOOST_AUTO_TEST_CASE(results_that_are_saved_have_their_history) {
  Tensor x = leaf({0.5});
  Tensor y = Exp::apply(x);
  Tensor first = grad(y.sum(), x, {.create_graph = true});
  Tensor second = grad(first.sum(), x);
  BOOST_TEST(values(first.detach())[0] == std::exp(0.5));
  BOOST_TEST(values(second)[0] == std::exp(0.5));
}

BOOST_AUTO_TEST_CASE(nothing_is_recorded_where_nothing_is_wanted) {
  struct Plain : autograd::Function<Plain> {
    static Tensor forward(Context& context, const Tensor& x) {
      BOOST_TEST(!context.needs_input_grad(0));
      return x * 2;
    }
    static Tensor backward(Context&, Grads) { throw std::logic_error("never"); }
  };
  BOOST_TEST(!Plain::apply(ones({2})).requires_grad());
  const NoGrad guard;
  BOOST_TEST(!Plain::apply(leaf({1})).requires_grad());
}

BOOST_AUTO_TEST_CASE(several_arguments_and_results) {
  struct Parts : autograd::Function<Parts> {
    static std::tuple<Tensor, std::array<Tensor, 2>> forward(Context& context, const Tensors& list,
                                                             int, std::optional<Tensor> last) {
      BOOST_TEST(context.needs_input_grad(0));
      BOOST_TEST(!context.needs_input_grad(1));
      BOOST_TEST(!context.needs_input_grad(2));
      BOOST_TEST(context.needs_input_grad(3));
      const Tensor sign = list[0] > 0;
      return {list[0] + list[1], {*last * 3, sign}};
    }
    static Tensors backward(Context&, Grads grads) {
      BOOST_TEST(grads.size() == 3u);
      BOOST_TEST(values(grads[0]) == (Doubles{2, 2}));
      BOOST_TEST(values(grads[1]) == (Doubles{0, 0}));  // nobody used this result
      return {grads[0], grads[0], Tensor(), grads[1] + 7};
    }
  };
  Tensor a = leaf({1, -2}), c = leaf({5, 6}), b = tensor({3, 4}).to(f64);
  auto [sum, others] = Parts::apply(Tensors{a, b}, 3, std::optional(c));
  BOOST_TEST(!others[1].requires_grad());
  BOOST_CHECK(others[1].dtype() == boolean);
  (sum * 2).sum().backward();
  BOOST_TEST(values(a.grad()) == (Doubles{2, 2}));
  BOOST_TEST(values(c.grad()) == (Doubles{7, 7}));
  BOOST_TEST(!b.grad().defined());
}

BOOST_AUTO_TEST_CASE(gradients_that_are_not_made) {
  struct Two : autograd::Function<Two> {
    static Tensors forward(Context& context, const Tensor& x) {
      const Tensor doubled = x * 2, rounded = x * 0;
      context.mark_non_differentiable({rounded});
      context.set_materialize_grads(false);
      return {doubled, x, rounded};
    }
    static Tensor backward(Context&, Grads grads) {
      BOOST_TEST(!grads[0].defined());
      BOOST_TEST(!grads[2].defined());
      return grads[1];
    }
  };
  Tensor x = leaf({3});
  Tensors y = Two::apply(x);
  BOOST_TEST(!y[1].is_same(x));  // the argument itself stays a leaf
  BOOST_TEST(x.is_leaf());
  BOOST_TEST(!y[1].is_leaf());
  BOOST_TEST(!y[2].requires_grad());
  y[1].backward();
  BOOST_TEST(values(x.grad()) == (Doubles{1}));
}

BOOST_AUTO_TEST_CASE(a_saved_tensor_that_was_changed_is_refused) {
  Tensor x = leaf({2}), y = x * 1, z = Cube::apply(y, 1.0);
  no_grad([&] { y.fill_(0); });
  require_error<AutogradError>([&] { z.backward(); },
                               "Cube: saved tensor 0 of shape (1,) is needed to compute the "
                               "gradient but has been changed in place (version 1, expected 0)");
  Tensor w = Exp::apply(x);
  no_grad([&] { w.fill_(0); });
  require_error<AutogradError>([&] { w.backward(); }, "Exp: output 0 of shape (1,)");
  Tensor once = Cube::apply(x, 1.0);
  once.backward();
  require_error<AutogradError>([&] { once.backward(); }, "backward through Cube for a second time",
                               "retain_graph = true");
}

namespace {
enum class Fault { none, forward, backward, foreign, count, shape, type, missing, in_place };
struct Faulty : autograd::Function<Faulty> {
  static constexpr const char* name = "mylib::faulty";
  static Tensor forward(Context& context, const Tensor& x, Fault fault) {
    context.save("fault", fault);
    if (fault == Fault::forward) return x + ones({7});
    if (fault == Fault::in_place) Tensor(x).add_(1);
    return x * 2;
  }
  static Tensors backward(Context& context, Grads grads) {
    switch (context.get<Fault>("fault")) {
      case Fault::backward:
        return {grads[0] + ones({7}), Tensor()};
      case Fault::foreign:
        throw std::out_of_range("mine");
      case Fault::count:
        return {grads[0]};
      case Fault::shape:
        return {grads[0].sum(), Tensor()};
      case Fault::type:
        return {grads[0] * context.get<int>("fault"), Tensor()};
      case Fault::missing:
        return {grads[0] * context.get<int>("other"), Tensor()};
      default:
        return {grads[0], grads[0]};  // a gradient that nobody wanted is not looked at
    }
  }
};
}  // namespace

BOOST_AUTO_TEST_CASE(errors_have_the_name_of_the_function) {
  Tensor x = leaf({1, 2});
  auto run = [&](Fault fault) { Faulty::apply(x, fault).sum().backward(); };
  run(Fault::none);
  BOOST_TEST(values(x.grad()) == (Doubles{1, 1}));
  require_error<ShapeError>([&] { run(Fault::forward); },
                            "add:", "(in forward of autograd function mylib::faulty)");
  require_error<ShapeError>([&] { run(Fault::backward); },
                            "add:", "(in backward of autograd function mylib::faulty)");
  require_error<std::out_of_range>([&] { run(Fault::foreign); }, "mine");
  require_error<AutogradError>([&] { run(Fault::count); },
                               "backward returned 1 gradients, but forward has 2 arguments",
                               "mylib::faulty");
  require_error<ShapeError>(
      [&] { run(Fault::shape); },
      "the gradient of argument 0 has shape (), but the argument has shape (2,)", "mylib::faulty");
  require_error<ValueError>([&] { run(Fault::type); }, "\"fault\" has another type");
  require_error<ValueError>([&] { run(Fault::missing); }, "under the name \"other\"");
  require_error<AutogradError>([&] { run(Fault::in_place); },
                               "argument 0 of shape (2,) requires a gradient, and was changed");
}

// A gradient in another type becomes that of the argument, as for operators.
BOOST_AUTO_TEST_CASE(types_of_gradients) {
  struct Wide : autograd::Function<Wide> {
    static Tensor forward(Context&, const Tensor& x) { return x.to(f32); }
    static Tensor backward(Context&, Grads grads) { return grads[0]; }
  };
  Tensor x = ones({2}, f16).requires_grad_();
  Wide::apply(x).sum().backward();
  BOOST_CHECK(x.grad().dtype() == f16);
}

BOOST_AUTO_TEST_SUITE_END()
