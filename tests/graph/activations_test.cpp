// Activations that products and convolutions compute themselves: which are folded, which are not,
// and that every bit stays. On cpu with the overlay onednn, without it, with it wherever it can,
// and on a device that is shaped like a GPU.
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "../files.h"
#include "crafted.h"
#include "pass_runs.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(activations_test)

using namespace tenon;
using test::explained;
using test::has;
using test::only;
using test::operators_of;
using test::same_bits;
using Results = std::vector<Tensor>;

namespace {

struct Activation {
  const char* op;
  std::function<Tensor(const Tensor&)> call;
};
const std::vector<Activation> kActivations = {
    {"relu", relu},
    {"tanh", [](const Tensor& x) { return tanh(x); }},
    {"sigmoid", sigmoid},
    {"silu", silu},
    {"gelu", [](const Tensor& x) { return gelu(x); }},
    {"gelu_tanh", [](const Tensor& x) { return gelu(x, "tanh"); }},
    {"leaky_relu", [](const Tensor& x) { return leaky_relu(x, 0.2); }},
    {"elu", [](const Tensor& x) { return elu(x, 0.7); }},
    {"softplus", [](const Tensor& x) { return softplus(x, 2.0, 3.0); }},
    {"mish", mish},
    {"logsigmoid", logsigmoid},
    {"hardsigmoid", hardsigmoid},
    {"hardswish", hardswish},
    {"clamp", relu6},
};

// Whether the overlay is asked before all others, which refuses most activations.
bool prefers_onednn() {
  const char* preferred = std::getenv("TENON_PREFER");
  return preferred && std::string_view(preferred) == "onednn" && default_device().type() == "cpu";
}
std::string folded(const std::string& activation, const std::string& product) {
  return "      folded: " + activation + " into " + product + "\n";
}

// A few small products: the plugin of the device has the cheapest plan, with or without overlays.
void require_folded(const test::FunctionOfOne& f, const Shape& shape, size_t before, size_t after,
                    const std::string& note) {
  const auto argument = [&] { return randn(shape); };
  std::string text = explained(f, test::kNoPasses, argument);
  BOOST_TEST(has(text, operators_of(before, before)), text);
  text = explained(f, only(&CompilePasses::activations), argument);
  if (prefers_onednn()) return;
  BOOST_TEST(has(text, operators_of(after, before)), text);
  BOOST_TEST(has(text, note), text);
}
void require_apart(const test::FunctionOfOne& f, const Shape& shape, size_t operators) {
  const std::string text =
      explained(f, only(&CompilePasses::activations), [&] { return randn(shape); });
  BOOST_TEST(has(text, operators_of(operators, operators)), text);
  BOOST_TEST(!has(text, "folded: "), text);
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_activation_becomes_part_of_each_product) {
  const NoGrad guard;
  const Tensor w = randn({5, 7}), b = randn({5}), kernel = randn({3, 2, 3, 3}), bias = randn({3});
  for (auto& [op, call] : kActivations) {
    require_folded([&](const Tensor& x) { return Results{call(linear(x, w, b))}; }, {9, 7}, 2, 1,
                   folded(op, "linear"));
    require_folded([&](const Tensor& x) { return Results{call(matmul(x, w.t()))}; }, {9, 7}, 2, 1,
                   folded(op, "matmul"));
    require_folded([&](const Tensor& x) { return Results{call(conv2d(x, kernel, bias))}; },
                   {2, 2, 9, 8}, 2, 1, folded(op, "conv2d"));
  }
}

BOOST_AUTO_TEST_CASE(other_convolutions_and_shapes_are_the_same_operators) {
  const NoGrad guard;
  const Tensor w = randn({5, 7}), line = randn({3, 2, 3}), pixel = randn({4, 1, 1, 1});
  require_folded([&](const Tensor& x) { return Results{relu(conv1d(x, line))}; }, {2, 2, 9}, 2, 1,
                 folded("relu", "conv2d"));
  require_folded([&](const Tensor& x) { return Results{relu(linear(x, w)).sum()}; }, {2, 3, 7}, 3,
                 2, folded("relu", "linear"));
  require_folded(
      [&](const Tensor& x) {
        return Results{relu(matmul(x, w.t()).reshape({3, 10}))};
      },
      {2, 3, 7}, 2, 1, folded("relu", "matmul"));
  require_folded([&](const Tensor& x) { return Results{relu(matmul(x, x))}; }, {4, 3, 3}, 2, 1,
                 folded("relu", "matmul"));
  require_folded(
      [&](const Tensor& x) { return Results{relu(conv2d(x, pixel, {}, {.groups = 4}))}; },
      {2, 4, 3, 3}, 2, 1, folded("relu", "conv2d"));
}

BOOST_AUTO_TEST_CASE(what_somebody_else_sees_stays) {
  const NoGrad guard;
  const Tensor w = randn({5, 7});
  Tensor state = randn({9, 7});
  require_apart(
      [&](const Tensor& x) {
        const Tensor y = linear(x, w);
        return Results{relu(y), y};
      },
      {9, 7}, 2);
  require_apart(
      [&](const Tensor& x) {
        const Tensor y = linear(x, w);
        return Results{relu(y).sum(), y.sum()};
      },
      {9, 7}, 4);
  // It is changed before the activation takes it, or after, or by it.
  require_apart(
      [&](const Tensor& x) {
        Tensor y = linear(x, w);
        y.narrow(0, 0, 2).mul_(2.0);
        return Results{relu(y)};
      },
      {9, 7}, 4);
  require_apart(
      [&](const Tensor& x) {
        Tensor y = linear(x, w);
        const Tensor z = relu(y);
        y.narrow(0, 0, 2).mul_(2.0);
        return Results{z, y.sum()};
      },
      {9, 7}, 5);
  require_apart(
      [&](const Tensor& x) {
        Tensor y = linear(x, w);
        y.relu_();
        return Results{y, y + 1.0};
      },
      {9, 7}, 4);
  // A part of it, or in another order, which repeats.
  require_apart([&](const Tensor& x) { return Results{relu(linear(x, w).narrow(0, 2, 3))}; },
                {9, 7}, 2);
  require_apart(
      [&](const Tensor& x) {
        return Results{relu(linear(x, w)[0].expand({4, 5}))};
      },
      {9, 7}, 2);
  // By then, the operand of the product has changed.
  Tensor twin = state.clone();
  auto plain = [&](const Tensor& x, Tensor& s) {
    const Tensor y = linear(s, w);
    s.copy_(x * 2.0);
    return relu(y);
  };
  auto compiled = compile([&](const Tensor& x) { return plain(x, state); },
                          {.passes = only(&CompilePasses::activations)});
  for (int i = 0; i < 6; ++i) {
    const Tensor x = randn({9, 7});
    BOOST_TEST(same_bits(compiled(x), plain(x, twin)));
  }
  BOOST_TEST(!test::says(compiled, "folded: "));
}

// The gradients of relu, sigmoid and tanh read the result, those of the others what the product
// made.
BOOST_AUTO_TEST_CASE(steps_of_training_fold_what_no_gradient_reads) {
  const auto notes = [](const Activation& activation) {
    Tensor w = randn({5, 7}).requires_grad_(), b = randn({5}).requires_grad_();
    return explained(
        [&](const Tensor& x) {
          w.set_grad(Tensor()), b.set_grad(Tensor());
          activation.call(linear(x, w, b)).square().sum().backward();
          return Results{w.grad().clone(), b.grad().clone()};
        },
        only(&CompilePasses::activations),
        [] {
          return randn({9, 7});
        });
  };
  for (auto& activation : kActivations) {
    const std::string op = activation.op, text = notes(activation);
    const bool by_result = op == "relu" || op == "sigmoid" || op == "tanh";
    if (!prefers_onednn()) BOOST_TEST(has(text, folded(op, "linear")) == by_result, text);
    if (!by_result) BOOST_TEST(!has(text, "folded: "), text);
  }
}

BOOST_AUTO_TEST_CASE(the_values_between_are_those_of_the_call) {
  const Tensor w = randn({5, 7});
  auto compiled = compile([&](const Tensor& x) { return leaky_relu(linear(x, w), 0.3); },
                          {.passes = only(&CompilePasses::activations)});
  const NoGrad guard;
  const double nan = std::nan(""), infinite = std::numeric_limits<double>::infinity();
  for (const double value : {nan, infinite, -infinite, 0.0, -0.0, 1e-30, -1e-30, 1e38, -1e38}) {
    const Tensor x = full({9, 7}, value);
    BOOST_TEST(same_bits(compiled(x), leaky_relu(linear(x, w), 0.3)));
  }
}

// All ways of cpu and onednn to a product or a convolution, at sizes between those of their tiles.
BOOST_AUTO_TEST_CASE(all_sizes_keep_their_bits) {
  const NoGrad guard;
  manual_seed(5);
  const std::vector<Shape> products = {{1, 300, 70}, {300, 1, 70},    {1, 1, 1},     {3, 200, 130},
                                       {200, 3, 65}, {2, 9, 300},     {64, 120, 84}, {130, 257, 33},
                                       {13, 40, 1},  {257, 129, 300}, {5, 7, 0}};
  size_t at = 0;
  for (const DType t : {f32, f64})
    for (auto& s : products)
      for (const bool by_rows : {true, false}) {
        const auto& activation = kActivations[at++ % kActivations.size()];
        const Tensor w = by_rows ? randn({s[1], s[2]}).to(t) : randn({s[2], s[1]}).to(t).t();
        const Tensor b = randn({s[1]}).to(t);
        const std::string text = explained(
            [&](const Tensor& x) {
              return Results{activation.call(linear(x, w, b)), relu(linear(x * 0.5, w)),
                             activation.call(matmul(x, w.t()))};
            },
            {},
            [&] {
              return randn({s[0], s[2]}).to(t);
            });
        BOOST_TEST(has(text, "folded: "), text);
      }
  const std::vector<std::pair<Shape, Shape>> convolutions = {
      {{2, 1, 28, 28}, {6, 1, 5, 5}},   {{3, 6, 14, 14}, {16, 6, 5, 5}},
      {{2, 16, 9, 11}, {40, 16, 3, 3}}, {{1, 3, 40, 300}, {5, 3, 3, 3}},
      {{2, 8, 7, 7}, {1, 8, 7, 7}},     {{1, 32, 60, 60}, {64, 32, 3, 3}}};
  for (const DType t : {f32, f64})
    for (auto& [shape, kernel] : convolutions) {
      const auto& activation = kActivations[at++ % kActivations.size()];
      const Tensor w = randn(kernel).to(t), b = randn({kernel[0]}).to(t);
      const std::string text = explained(
          [&](const Tensor& x) {
            return Results{activation.call(conv2d(x, w, b)),
                           relu(conv2d(x, w, {}, {.stride = 2, .padding = 1}))};
          },
          {}, [&] { return randn(shape).to(t); });
      BOOST_TEST(has(text, "folded: "), text);
    }
}

BOOST_AUTO_TEST_CASE(half_types_and_channels_last_keep_their_bits) {
  const NoGrad guard;
  const Tensor w = randn({40, 30}), kernel = randn({8, 4, 3, 3});
  for (const DType t : {bf16, f16}) {
    const Tensor half = w.to(t), small = kernel.to(t);
    explained([&](const Tensor& x) { return Results{relu(linear(x, half))}; }, {},
              [&] {
                return randn({50, 30}).to(t);
              });
    explained([&](const Tensor& x) { return Results{relu(conv2d(x, small))}; }, {},
              [&] {
                return randn({2, 4, 10, 10}).to(t);
              });
  }
  explained(
      [&](const Tensor& x) {
        return Results{relu(conv2d(x, kernel)), gelu(conv2d(x, kernel))};
      },
      {},
      [] {
        return randn({2, 4, 10, 10}).contiguous(channels_last);
      });
}

// What computes a convolution, and of activations relu alone: others are done one by one, as
// before.
BOOST_AUTO_TEST_CASE(a_plugin_that_refuses_is_left_alone, *boost::unit_test::precondition([](auto) {
                       return boost::test_tools::assertion_result(prefers_onednn());
                     })) {
  const NoGrad guard;
  const Tensor kernel = randn({16, 6, 5, 5}), w = randn({64, 32});
  std::string text =
      explained([&](const Tensor& x) { return Results{tanh(conv2d(x, kernel))}; }, {},
                [] {
                  return randn({8, 6, 14, 14});
                });
  BOOST_TEST(
      (has(text, "not folded: tanh into conv2d, because onednn computes the first, and cpu") ||
       has(text, folded("tanh", "conv2d"))),
      text);
  text = explained([&](const Tensor& x) { return Results{relu(linear(x, w))}; }, {},
                   [] {
                     return randn({64, 32});
                   });
  BOOST_TEST(has(text, folded("relu", "linear")), text);
  text = explained([&](const Tensor& x) { return Results{gelu(linear(x, w))}; }, {},
                   [] {
                     return randn({64, 32});
                   });
  BOOST_TEST(!has(text, folded("gelu", "linear")), text);
}

// Large enough for the overlay wherever that is faster.
BOOST_AUTO_TEST_CASE(convolutions_take_relu_and_a_residual_whoever_computes_them) {
  const NoGrad guard;
  const Tensor w = randn({64, 64, 3, 3}), b = randn({64}), r = randn({2, 64, 30, 30});
  const auto f = [&](const Tensor& x) {
    const Tensor y = conv2d(x, w, b, {.padding = 1});
    return Results{relu(y + r)};
  };
  const std::string text = explained(f, {}, [] { return randn({2, 64, 30, 30}); });
  // Where the overlay and cpu say that they take about as long, they may share the work.
  BOOST_TEST((has(text, folded("add", "conv2d") + folded("relu", "conv2d")) ||
              has(text, "computes the first, and")),
             text);
}

// A file has the operators as they were recorded, and each process folds them anew. An attribute
// that somebody else wrote there is that of the operator, or an error.
BOOST_AUTO_TEST_CASE(files_have_the_operators_one_by_one) {
  using test::crafted::Crafted;
  using test::crafted::json;
  Crafted file([](const std::filesystem::path& path) {
    manual_seed(3);
    const Tensor w = randn({5, 7});
    const NoGrad guard;
    auto compiled = compile([&](const Tensor& x) { return linear(x, w); });
    for (int i = 0; i < 3; ++i) compiled(randn({9, 7}));
    compiled.save(path, {.inputs = {"x"}, .outputs = {"y"}});
  });
  const Tensor x = randn({9, 7});
  const Tensor y = Program::load(file.write(file.graph)).run({{"x", x}})["y"];
  const auto with = [&](const json& value) {
    return [&, value](Crafted& f) {
      f.node("linear")["attributes"].push_back(json::array({"activation", "text", value}));
    };
  };
  BOOST_TEST(has(file.refusal(with("reluu")),
                 "activation \"reluu\" is not known; there are clamp, elu, gelu, "));
  BOOST_TEST(has(file.refusal([](Crafted& f) {
    f.node("linear")["attributes"].push_back(json::array({"activation", "int", 1}));
  }),
                 "no attribute \"activation\" of the kind that it needs"));
  BOOST_TEST(has(file.refusal(with("leaky_relu")), "it takes 1 scalars here, found 0"));
  if (prefers_onednn()) return;
  with("relu")(file);
  BOOST_TEST(same_bits(Program::load(file.write(file.graph)).run({{"x", x}})["y"], relu(y)));
}

BOOST_AUTO_TEST_SUITE_END()
