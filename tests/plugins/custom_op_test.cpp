// An operator of a user's library, with its kernel in a plugin: examples/custom_op.
#include <cmath>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/core/dispatch/custom_op.h>
#include <tenon/plugins/host/registry.h>
#include <tenon/tenon.h>

#include "../../examples/custom_op/swish2.h"
#include "places.h"
#include "support/expect.h"

namespace {
struct KernelFolder {
  KernelFolder() {
    tenon::plugins::registry().add_path(tenon::test::build_dir() +
                                        "/tests/plugins/fixtures/custom_op");
    tenon::plugins::registry().add_path(tenon::test::build_dir() + "/tests/sim");
  }
};
}  // namespace

BOOST_AUTO_TEST_SUITE(custom_op_test, *boost::unit_test::fixture<KernelFolder>())

using namespace tenon;
using mylib::swish2;
using test::has;
using test::require_error;

namespace {

using Doubles = std::vector<double>;
using Metas = std::vector<custom::TensorMeta>;
using Tensors = std::vector<Tensor>;

double swish(double x, double beta) { return x / (1 + std::exp(-beta * x)); }

void require_swish(const Tensor& x, double beta, double tolerance) {
  const auto from = x.to_vector<double>(), to = swish2(x, beta).to_vector<double>();
  for (size_t i = 0; i < from.size(); ++i)
    BOOST_CHECK_SMALL(to[i] - swish(from[i], beta), tolerance);
}

// What was counted while `body` ran.
DispatchStats counted(auto&& body) {
  count_dispatch();
  reset_dispatch_stats();
  body();
  synchronize();
  const DispatchStats stats = dispatch_stats();
  count_dispatch(false);
  return stats;
}

// Who ran the operator on this device, "mylib".
std::string owner_of(const DispatchStats& stats, const std::string& device) {
  for (auto& run : stats.runs)
    if (run.op == "mylib::swish2" && run.device == device) return run.owner;
  return "";
}

const Tensor& input() {
  static const Tensor x = tensor({-3, -0.5, 0, 0.25, 1, 7}, {2, 3}, {.device = Device()}).to(f64);
  return x;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_kernel_of_the_plugin_computes_it) {
  const auto stats = counted([] {
    require_swish(input(), 1.5, 1e-12);
    require_swish(input().to(f32), 0.5, 1e-6);
  });
  BOOST_TEST(owner_of(stats, "cpu:0") == "mylib");
  BOOST_TEST(stats.decomposed.empty());
  BOOST_TEST(swish2(zeros({0, 3}), 1).numel() == 0);
}

// What the kernel does not take, and what other devices have no kernel for.
BOOST_AUTO_TEST_CASE(the_decomposition_computes_the_rest) {
  auto stats = counted([] { require_swish(input().to("sim:0"), 1.5, 1e-12); });
  BOOST_TEST(owner_of(stats, "sim:0") == "");
  BOOST_REQUIRE(stats.decomposed.size() == 1u);
  BOOST_TEST(stats.decomposed[0].op == "mylib::swish2");
  BOOST_TEST(has(stats.decomposed[0].reason, "no kernel for operator \"mylib::swish2\""),
             stats.decomposed[0].reason);
  stats = counted([] { require_swish(input().to(f16), 1.5, 1e-2); });
  BOOST_TEST(stats.widened.size() == 1u);
  require_swish(input().t().narrow(0, 1, 2), 1.5, 1e-12);
}

BOOST_AUTO_TEST_CASE(gradients_of_both_orders) {
  for (const char* device : {"cpu:0", "sim:0"}) {
    Tensor x = input().to(device).detach().requires_grad_();
    const double beta = 1.5, h = 1e-4;
    Tensor first = grad(swish2(x, beta).sum(), x, {.create_graph = true});
    const auto slopes = first.detach().to_vector<double>();
    const auto curvatures = grad(first.sum(), x).to_vector<double>(),
               at = x.detach().to_vector<double>();
    for (size_t i = 0; i < at.size(); ++i) {
      const double up = swish(at[i] + h, beta), down = swish(at[i] - h, beta);
      BOOST_CHECK_SMALL(slopes[i] - (up - down) / (2 * h), 1e-6);
      BOOST_CHECK_SMALL(curvatures[i] - (up - 2 * swish(at[i], beta) + down) / (h * h), 1e-5);
    }
  }
  BOOST_TEST(swish2(input().detach().requires_grad_(), 1).str().find("mylib::swish2") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(errors_of_calls_name_the_operator) {
  require_error<DTypeError>([] { swish2(ones({2}, i64), 1); },
                            "mylib::swish2: x must be floating; convert it with .to(f32)");
  require_error<ValueError>([] { swish2(Tensor(), 1); },
                            "mylib::swish2: argument 0 is an undefined tensor");
}

namespace {
Metas same(const custom::InferContext& call) { return {call.input(0)}; }

// Outputs of several types, and attributes of all of them.
const custom::Op parts_op({
    .name = "testlib::parts",
    .infer =
        [](const custom::InferContext& call) {
          const Shape sizes = call.attributes.get_list("sizes");
          if (sizes.numel() != call.input(0).shape.numel())
            call.shape_error("the sizes do not fit");
          return Metas{{call.input(0).dtype, sizes}, {boolean, call.input(0).shape}};
        },
    .decompose =
        [](const custom::CallContext& call) {
          BOOST_TEST(call.attributes.get_bool("flag"));
          BOOST_TEST(call.attributes.get_string("text") == "some text");
          const auto factor = call.attributes.get_int("factor");
          return Tensors{call.input(0).reshape(call.attributes.get_list("sizes")) * factor,
                         call.input(0) > 0};
        },
    .gradient =
        [](const custom::GradientContext& call) {
          BOOST_TEST(!call.inputs[0].defined());  // it is not saved
          BOOST_TEST(call.outputs[1].defined());
          const auto factor = static_cast<double>(call.attributes.get_int("factor"));
          return Tensors{call.grads[0].reshape(call.outputs[1].shape()) * factor};
        },
    .saves_outputs = {1},
});
custom::Attributes parts_attributes(const Shape& sizes) {
  return custom::Attributes()
      .set("sizes", sizes)
      .set("factor", 3)
      .set("flag", true)
      .set("text", "some text");
}

const custom::Op added_op({
    .name = "testlib::added",
    .infer =
        [](const custom::InferContext& call) {
          return Metas{{call.input(0).dtype,
                        broadcast_shapes(call.input(0).shape, call.input(1).shape, call.name)}};
        },
    .decompose =
        [](const custom::CallContext& call) { return Tensors{call.input(0) + call.input(1)}; },
    .gradient =
        [](const custom::GradientContext& call) {
          return Tensors{call.grads[0], call.needed[1] ? call.grads[0] : Tensor()};
        },
    .pointwise = true,
});
}  // namespace

BOOST_AUTO_TEST_CASE(several_outputs_and_attributes) {
  Tensor x = input().detach().requires_grad_();
  auto outputs = parts_op.call({x}, parts_attributes({6}));
  BOOST_REQUIRE(outputs.size() == 2u);
  BOOST_CHECK(outputs[1].dtype() == boolean);
  BOOST_TEST(!outputs[1].requires_grad());
  BOOST_TEST(outputs[0].detach().to_vector<double>() == (Doubles{-9, -1.5, 0, 0.75, 3, 21}));
  outputs[0].sum().backward();
  BOOST_TEST(x.grad().to_vector<double>() == Doubles(6, 3.0));
  require_error<ShapeError>([&] { parts_op.call({x}, parts_attributes({5})); },
                            "testlib::parts: the sizes do not fit");
  require_error<ValueError>([&] { parts_op({x}, parts_attributes({6})); },
                            "testlib::parts: it has 2 outputs; use call()");
  require_error<ValueError>([&] { parts_op.call({x}); }, "no attribute \"sizes\"");
  require_error<ValueError>([] { parts_op.call({}, parts_attributes({6})); },
                            "testlib::parts: argument 0 is missing");
  custom::Attributes many;
  require_error<ValueError>(
      [&] {
        for (int i = 0; i < 9; ++i) many.set(std::to_string(i), i);
      },
      "\"8\" is one more than the eight");
}

BOOST_AUTO_TEST_CASE(pointwise_operators_broadcast) {
  Tensor row = ones({3}, f64).requires_grad_(), column = full({2, 1}, 2, f64).requires_grad_();
  Tensor sum = added_op({row, column});
  BOOST_TEST(sum.detach().to_vector<double>() == Doubles(6, 3.0));
  sum.sum().backward();
  BOOST_TEST(row.grad().to_vector<double>() == Doubles(3, 2.0));
  BOOST_TEST(column.grad().to_vector<double>() == Doubles(2, 3.0));
}

// One plan serves all shapes of as many elements, but the rule is asked for each of them.
BOOST_AUTO_TEST_CASE(the_shape_rule_of_a_pointwise_operator_sees_every_shape) {
  const custom::Op rows(
      {.name = "testlib::rows",
       .infer =
           [](const custom::InferContext& call) {
             if (call.input(0).shape.size() != 2) call.shape_error("x must have rows and columns");
             return Metas{call.input(0)};
           },
       .decompose = [](const custom::CallContext& call) { return Tensors{call.input(0) * 2}; },
       .pointwise = true});
  for (int64_t n : {0, 2}) {
    BOOST_TEST(rows({ones({n, 3}, f64)}).shape() == (Shape{n, 3}));
    BOOST_TEST(rows({ones({3, n}, f64)}).shape() == (Shape{3, n}));
    require_error<ShapeError>([&] { rows({ones({3 * n}, f64)}); },
                              "testlib::rows: x must have rows and columns");
  }
}

BOOST_AUTO_TEST_CASE(definitions_that_are_refused) {
  auto define = [](custom::Definition d) { custom::Op op(std::move(d)); };
  for (const char* name : {"swish2", "My::op", "a::b::c", "::x", "x::", "a::b c"})
    require_error<ValueError>([&] { define({.name = name, .infer = same}); },
                              "is no name of an operator", "\"library::operator\"");
  require_error<ValueError>([&] { define({.name = "mylib::swish2", .infer = same}); },
                            "there is an operator \"mylib::swish2\" already");
  require_error<ValueError>([&] { define({.name = "testlib::nothing", .infer = {}}); },
                            "has no shape rule");
  require_error<ValueError>(
      [&] { define({.name = "testlib::far", .infer = same, .saves_inputs = {40}}); },
      "saves number 40");
}

BOOST_AUTO_TEST_CASE(rules_that_do_not_fit) {
  const custom::Op lacking({.name = "testlib::lacking", .infer = same});
  require_error<UnsupportedError>([&] { lacking({input()}); }, "testlib::lacking",
                                  "no plugin of this device offers it");
  const custom::Op empty_rule(
      {.name = "testlib::empty_rule", .infer = [](const auto&) { return Metas{}; }});
  require_error<ValueError>([&] { empty_rule({input()}); }, "returned 0 outputs");
  const custom::Op wrong(
      {.name = "testlib::wrong", .infer = same, .decompose = [](const custom::CallContext& call) {
         return Tensors{call.input(0).sum()};
       }});
  require_error<ShapeError>([&] { wrong({input()}); },
                            "testlib::wrong: the decomposition made output 0 as f64 (), but the "
                            "shape rule says f64 (2, 3)");
  auto pass = [](const custom::CallContext& call) { return Tensors{call.input(0) * 1}; };
  const custom::Op few(
      {.name = "testlib::few", .infer = same, .decompose = pass, .gradient = [](const auto&) {
         return Tensors{};
       }});
  Tensor x = input().detach().requires_grad_();
  require_error<AutogradError>([&] { few({x}).sum().backward(); },
                               "testlib::few: the gradient rule returned 0 tensors for 1 inputs");
  const custom::Op flat({.name = "testlib::flat",
                         .infer = same,
                         .decompose = pass,
                         .gradient = [](const custom::GradientContext& call) {
                           return Tensors{call.grads[0].sum()};
                         }});
  require_error<ShapeError>([&] { flat({x}).sum().backward(); },
                            "testlib::flat: the gradient of input 0 has shape (), but the input "
                            "(2, 3)");
}

// Attributes of equal values are told apart by their names.
BOOST_AUTO_TEST_CASE(plans_are_made_for_the_names_of_attributes) {
  const auto shape = [](const custom::Attributes& a) {
    return a.all().contains("rows") ? Shape{a.get_int("rows"), 1} : Shape{1, a.get_int("columns")};
  };
  const custom::Op sized({.name = "testlib::sized",
                          .infer =
                              [=](const custom::InferContext& call) {
                                return Metas{{call.input(0).dtype, shape(call.attributes)}};
                              },
                          .decompose =
                              [=](const custom::CallContext& call) {
                                return Tensors{zeros(shape(call.attributes), f64)};
                              }});
  BOOST_TEST(sized({input()}, custom::Attributes().set("rows", 2)).shape() == (Shape{2, 1}));
  BOOST_TEST(sized({input()}, custom::Attributes().set("columns", 2)).shape() == (Shape{1, 2}));
}

// What a decomposition returns may be an input itself; the result is a tensor of its own.
BOOST_AUTO_TEST_CASE(a_decomposition_that_returns_its_input) {
  const custom::Op unchanged(
      {.name = "testlib::unchanged",
       .infer = [](const custom::InferContext& call) { return Metas{call.input(0)}; },
       .decompose = [](const custom::CallContext& call) { return Tensors{call.input(0).to(f64)}; },
       .gradient = [](const custom::GradientContext& call) { return Tensors{call.grads[0]}; }});
  Tensor p = ones({2}, f64).requires_grad_();
  for (int i = 1; i <= 2; ++i) {
    unchanged({p}).sum().backward();
    BOOST_TEST(p.is_leaf());
    BOOST_TEST(p.grad().sum().item() == 2 * i);
  }
}

BOOST_AUTO_TEST_SUITE_END()
