// Tensors that products, convolutions and batch norms add to their results, and batch norms that
// compute activations: which are folded, which are not, and that every bit stays. On cpu with the
// overlay onednn, without it, with it wherever it can, and on a device that is shaped like a GPU.
#include <cstdlib>
#include <functional>
#include <optional>
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

BOOST_AUTO_TEST_SUITE(residuals_test)

using namespace tenon;
using test::explained;
using test::has;
using test::only;
using test::operators_of;
using test::same_bits;
using Results = std::vector<Tensor>;

namespace {

constexpr CompilePasses kFolding{.dead_code = false,
                                 .common_subexpressions = false,
                                 .copies = false,
                                 .constants = false,
                                 .residuals = true,
                                 .activations = true,
                                 .pointwise = false};

bool prefers_onednn() {
  const char* preferred = std::getenv("TENON_PREFER");
  return preferred && std::string_view(preferred) == "onednn" && default_device().type() == "cpu";
}

// Running statistics that are no zeros and ones.
struct Norm {
  explicit Norm(int64_t n, DType t = f32)
      : mean(randn({n}).to(t)),
        var((rand({n}) + 0.5).to(t)),
        weight(randn({n}).to(t)),
        bias(randn({n}).to(t)) {}
  Tensor operator()(const Tensor& x) const {
    return batch_norm(x, mean, var, weight, bias, false, 0.1, 1e-5);
  }
  Tensor trained(const Tensor& x) {
    return batch_norm(x, mean, var, weight, bias, true, 0.1, 1e-5);
  }
  Tensor mean, var, weight, bias;
};

// `into` became part of one operator with all that is named, from the first to the last.
void require_folded(const test::FunctionOfOne& f, const Shape& shape, size_t before, size_t after,
                    const std::vector<std::string>& notes,
                    const CompilePasses& passes = only(&CompilePasses::residuals)) {
  const auto argument = [&] { return randn(shape); };
  std::string text = explained(f, test::kNoPasses, argument);
  BOOST_TEST(has(text, operators_of(before, before)), text);
  text = explained(f, passes, argument);
  if (prefers_onednn()) return;
  BOOST_TEST(has(text, operators_of(after, before)), text);
  for (auto& note : notes) BOOST_TEST(has(text, "      folded: " + note + "\n"), text);
}
void require_apart(const test::FunctionOfOne& f, const Shape& shape, size_t operators,
                   const CompilePasses& passes = only(&CompilePasses::residuals)) {
  const std::string text = explained(f, passes, [&] { return randn(shape); });
  BOOST_TEST(has(text, operators_of(operators, operators)), text);
  BOOST_TEST(!has(text, " folded: "), text);
}

// A block of a residual network, whose forward is the one that people write.
struct Block : nn::Module<Block> {
  static constexpr int num_fields = 5;
  nn::Conv2d conv1, conv2;
  nn::BatchNorm2d bn1, bn2;
  std::optional<nn::Sequential> downsample;
  Block(int64_t in, int64_t out)
      : conv1(in, out, 3, {.padding = 1}, {.bias = false}),
        conv2(out, out, 3, {.padding = 1}, {.bias = false}),
        bn1(out),
        bn2(out) {
    if (in != out) downsample.emplace(nn::Conv2d(in, out, 1), nn::BatchNorm2d(out));
  }
  Tensor forward(const Tensor& x) {
    const Tensor h = bn2(conv2(relu(bn1(conv1(x)))));
    return relu(h + (downsample ? (*downsample)(x) : x));
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_tensor_is_added_by_each_product) {
  const NoGrad guard;
  const Tensor w = randn({5, 7}), b = randn({5}), r = randn({9, 5}), kernel = randn({3, 2, 3, 3});
  const Tensor image = randn({2, 3, 7, 6});
  const Norm norm(2), features(7);
  require_folded([&](const Tensor& x) { return Results{linear(x, w, b) + r}; }, {9, 7}, 2, 1,
                 {"add into linear"});
  require_folded([&](const Tensor& x) { return Results{r + linear(x, w)}; }, {9, 7}, 2, 1,
                 {"add into linear"});
  require_folded([&](const Tensor& x) { return Results{matmul(x, w.t()) + r}; }, {9, 7}, 2, 1,
                 {"add into matmul"});
  require_folded([&](const Tensor& x) { return Results{conv2d(x, kernel) + image}; }, {2, 2, 9, 8},
                 2, 1, {"add into conv2d"});
  require_folded([&](const Tensor& x) { return Results{norm(x) + x}; }, {2, 2, 9, 8}, 2, 1,
                 {"add into batch_norm"});
  require_folded([&](const Tensor& x) { return Results{x + features(x)}; }, {9, 7}, 2, 1,
                 {"add into batch_norm"});
  // The elements in the order of memory, whatever shape they have.
  require_folded(
      [&](const Tensor& x) {
        return Results{linear(x, w, b) + r.reshape({3, 3, 5})};
      },
      {3, 3, 7}, 2, 1, {"add into linear"});
}

BOOST_AUTO_TEST_CASE(activations_follow) {
  const NoGrad guard;
  const Tensor w = randn({5, 7}), r = randn({9, 5}), kernel = randn({2, 2, 3, 3});
  const Norm norm(2);
  const std::vector<std::pair<std::string, std::function<Tensor(const Tensor&)>>> activations = {
      {"relu", [](const Tensor& x) { return relu(x); }},
      {"silu", [](const Tensor& x) { return silu(x); }},
      {"leaky_relu", [](const Tensor& x) { return leaky_relu(x, 0.2); }},
      {"softplus", [](const Tensor& x) { return softplus(x, 2.0, 3.0); }},
      {"clamp", [](const Tensor& x) { return relu6(x); }},
      {"hardswish", [](const Tensor& x) { return hardswish(x); }},
  };
  for (auto& [name, call] : activations) {
    require_folded([&](const Tensor& x) { return Results{call(linear(x, w) + r)}; }, {9, 7}, 3, 1,
                   {"add into linear", name + " into linear"}, kFolding);
    require_folded(
        [&](const Tensor& x) { return Results{call(conv2d(x, kernel, {}, {.padding = 1}) + x)}; },
        {2, 2, 9, 8}, 3, 1, {"add into conv2d", name + " into conv2d"}, kFolding);
    require_folded([&](const Tensor& x) { return Results{call(norm(x))}; }, {2, 2, 9, 8}, 2, 1,
                   {name + " into batch_norm"}, kFolding);
    require_folded([&](const Tensor& x) { return Results{call(norm(x) + x)}; }, {2, 2, 9, 8}, 3, 1,
                   {"add into batch_norm", name + " into batch_norm"}, kFolding);
  }
}

BOOST_AUTO_TEST_CASE(what_somebody_else_sees_stays) {
  const NoGrad guard;
  const Tensor w = randn({5, 7}), r = randn({9, 5});
  const Norm norm(7);
  require_apart(
      [&](const Tensor& x) {
        const Tensor y = linear(x, w);
        return Results{y + r, y};
      },
      {9, 7}, 2);
  require_apart(
      [&](const Tensor& x) {
        const Tensor y = norm(x);
        return Results{y + y};
      },
      {9, 7}, 2);
  // Others than element for element.
  require_apart([&](const Tensor& x) { return Results{linear(x, w) + r[0]}; }, {9, 7}, 2);
  require_apart([&](const Tensor& x) { return Results{linear(x, w) + r.narrow(1, 0, 1)}; }, {9, 7},
                2);
  require_apart([&](const Tensor& x) { return Results{linear(x, w) + linear(x, w).t()}; }, {5, 7},
                3);
  require_apart([&](const Tensor& x) { return Results{linear(x, w) + 1.0}; }, {9, 7}, 2);
  require_apart([&](const Tensor& x) { return Results{linear(x, w) - r}; }, {9, 7}, 2);
  require_apart([&](const Tensor& x) { return Results{linear(x, w)[0] + r[0]}; }, {9, 7}, 2);
  // The sum goes where what is added lies, when it is there; and once is enough.
  require_folded(
      [&](const Tensor& x) {
        Tensor sum = x * 2.0;
        sum.add_(norm(x));
        return Results{sum};
      },
      {9, 7}, 4, 3, {"add into batch_norm"});
  require_folded([&](const Tensor& x) { return Results{linear(x, w) + r + r}; }, {9, 7}, 3, 2,
                 {"add into linear"});
}

// A sum that goes on into pointwise operators is made by them, in one walk through memory.
BOOST_AUTO_TEST_CASE(sums_that_are_part_of_more_are_left_to_it) {
  const NoGrad guard;
  const Tensor w = randn({400, 30}), r = randn({300, 400});
  const std::string text =
      explained([&](const Tensor& x) { return Results{(linear(x, w) + r).square() * r}; }, {},
                [] {
                  return randn({300, 30});
                });
  BOOST_TEST(has(text, "fused: add, "), text);
  BOOST_TEST(!has(text, "folded: "), text);
}

// A batch norm that trains changes its statistics where it runs, so nobody may look in between.
BOOST_AUTO_TEST_CASE(statistics_are_there_when_they_are_read) {
  const NoGrad guard;
  const auto compare = [](auto&& f, const std::string& note, bool folds) {
    manual_seed(4);
    Norm one(6), two = one;
    for (auto* t : {&two.mean, &two.var}) *t = t->clone();
    auto compiled = compile([&](const Tensor& x) { return f(one, x); }, {.passes = kFolding});
    for (int i = 0; i < 6; ++i) {
      const Tensor x = randn({4, 6, 3, 5});
      BOOST_TEST(same_bits(compiled(x), f(two, x)));
      BOOST_TEST(same_bits({one.mean, one.var}, {two.mean, two.var}));
    }
    const std::string text = compiled.explain();
    if (!prefers_onednn()) BOOST_TEST(has(text, " folded: " + note) == folds, text);
  };
  compare([](Norm& n, const Tensor& x) { return Results{relu(n.trained(x) + x)}; },
          "relu into batch_norm", true);
  compare(
      [](Norm& n, const Tensor& x) {
        const Tensor y = n.trained(x), before = n.mean * 2.0;
        return Results{relu(y), before};
      },
      "relu into batch_norm", false);
  compare(
      [](Norm& n, const Tensor& x) {
        const Tensor y = n.trained(x);
        n.var.mul_(0.5);
        return Results{relu(y)};
      },
      "relu into batch_norm", false);
  compare(
      [](Norm& n, const Tensor& x) {
        const Tensor y = n(x);
        n.mean.add_(1.0);
        return Results{relu(y + x)};
      },
      "add into batch_norm", false);
}

BOOST_AUTO_TEST_CASE(blocks_of_a_residual_network_train_and_evaluate) {
  for (const int64_t in : {4, 3}) {
    manual_seed(7);
    Block net(in, 4);
    Block twin = nn::clone(net);
    optim::SGD one(net.parameters(), {.lr = 0.05}), two(twin.parameters(), {.lr = 0.05});
    const auto step = [](Block& block, optim::SGD& optimizer, const Tensor& x) {
      optimizer.zero_grad();
      Tensor loss = block(x).square().mean();
      loss.backward();
      optimizer.step();
      return loss.detach();
    };
    auto train = compile([&](const Tensor& x) { return step(net, one, x); });
    auto evaluate = compile([&](const Tensor& x) { return net(x); });
    for (int i = 0; i < 12; ++i) {
      const Tensor x = randn({3, in, 9, 8});
      net.train(), twin.train();
      BOOST_TEST(same_bits(train(x), step(twin, two, x)));
      net.eval(), twin.eval();
      const NoGrad guard;
      BOOST_TEST(same_bits(evaluate(x), twin(x)));
      BOOST_TEST(same_bits(evaluate(x), twin(x)));
    }
    if (prefers_onednn()) continue;
    // The activation of the sum, and that in between; four operators are left of a plain block.
    for (const std::string& text : {train.explain(), evaluate.explain()}) {
      BOOST_TEST(has(text, "      folded: add into batch_norm\n"), text);
      BOOST_TEST(has(text, "      folded: relu into batch_norm\n      folded: relu into"), text);
    }
    if (in == 4) BOOST_TEST(test::says(evaluate, "a program of 4 operators"));
  }
}

BOOST_AUTO_TEST_CASE(all_sizes_keep_their_bits) {
  const NoGrad guard;
  manual_seed(6);
  const auto both = [](const Tensor& y, const Tensor& r) {
    return Results{relu(y + r), silu(y), r + y};
  };
  for (const DType t : {f32, f64, bf16, f16}) {
    for (auto& s : std::vector<Shape>{{2, 3, 40, 60},
                                      {1, 40, 7, 7},
                                      {5, 33, 1, 1},
                                      {3, 17, 2, 1},
                                      {0, 3, 4, 4},
                                      {2, 64, 5},
                                      {300, 70},
                                      {1, 1, 1, 1},
                                      {7, 5, 0, 3},
                                      {1, 4000}})
      for (const bool last : {false, true}) {
        if (last && s.size() != 4) continue;
        const auto format = last ? channels_last : contiguous_format;
        const Norm norm(s[1]), half(s[1], t);
        const Tensor r = randn(s).to(t).contiguous(format);
        const auto f = [&](const Tensor& x) {
          Results all = both(t == f64 ? half(x) : norm(x), r);
          for (auto& y : both(half(x * 2.0), r.mul(0.5))) all.push_back(y);
          return all;
        };
        explained(f, {}, [&] { return randn(s).to(t).contiguous(format); });
      }
    for (auto& s : std::vector<Shape>{{1, 300, 70},
                                      {300, 1, 70},
                                      {130, 257, 33},
                                      {13, 40, 1},
                                      {5, 7, 0},
                                      {0, 7, 4},
                                      {700, 3, 90},
                                      {4, 900, 64}}) {
      const Tensor w = randn({s[1], s[2]}).to(t), b = randn({s[1]}).to(t),
                   r = randn({s[0], s[1]}).to(t);
      explained(
          [&](const Tensor& x) {
            return Results{relu(linear(x, w, b) + r), r + linear(x, w), gelu(matmul(x, w.t()) + r)};
          },
          {},
          [&] {
            return randn({s[0], s[2]}).to(t);
          });
    }
    for (auto& [s, k] : std::vector<std::pair<Shape, Shape>>{{{3, 6, 14, 14}, {6, 6, 5, 5}},
                                                             {{1, 3, 40, 300}, {3, 3, 3, 3}},
                                                             {{2, 16, 9, 11}, {16, 4, 3, 3}},
                                                             {{1, 32, 60, 60}, {32, 32, 3, 3}},
                                                             {{0, 2, 5, 5}, {2, 2, 3, 3}}}) {
      const Tensor w = randn(k).to(t), b = randn({k[0]}).to(t), r = randn(s).to(t);
      const int64_t groups = s[1] / k[1], padding = k[2] / 2;
      const auto conv = [&](const Tensor& x) {
        return conv2d(x, w, b, {.padding = padding, .groups = groups});
      };
      const auto f = [&](const Tensor& x) {
        return Results{relu(conv(x) + r), x + conv(x), tanh(conv(x))};
      };
      explained(f, {}, [&, s = s] { return randn(s).to(t); });
      explained(f, {}, [&, s = s] { return randn(s).to(t).contiguous(channels_last); });
    }
  }
}

// A file has the operators as they were recorded, and each process folds them anew. What somebody
// else wrote there is an operator with a residual, or an error.
BOOST_AUTO_TEST_CASE(files_have_the_operators_one_by_one) {
  using test::crafted::Crafted;
  using test::crafted::json;
  Crafted file([](const std::filesystem::path& path) {
    manual_seed(3);
    const NoGrad guard;
    Block net(4, 4);
    net.eval();
    auto compiled = compile(net);
    for (int i = 0; i < 3; ++i) compiled(randn({2, 4, 6, 6}));
    compiled.save(path, {.inputs = {"x"}, .outputs = {"y"}});
  });
  manual_seed(3);
  const NoGrad guard;
  Block net(4, 4);
  net.eval();
  const Tensor x = randn({2, 4, 6, 6});
  const auto run = [&] { return Program::load(file.write(file.graph)).run({{"x", x}})["y"]; };
  BOOST_TEST(same_bits(run(), net(x)));
  BOOST_TEST(file.graph.dump().find("residual") == std::string::npos);
  const json flag = json::array({"residual", "bool", true});
  // The input that is added, and where it is among the values.
  const auto with_input = [&](Crafted& f, const std::function<void(json&)>& change) {
    json& conv = f.node("conv2d");
    json input = conv["inputs"][0];
    change(input);
    conv["attributes"].push_back(flag);
    conv["inputs"].push_back(input);
    json access = conv["at"][0];
    conv["at"].insert(conv["at"].begin() + 3, access);
  };
  BOOST_TEST(has(file.refusal([&](Crafted& f) { f.node("conv2d")["attributes"].push_back(flag); }),
                 "operator 0 (conv2d)"));
  BOOST_TEST(has(file.refusal([&](Crafted& f) { f.node("relu")["attributes"].push_back(flag); }),
                 "operator relu"));
  const std::string other = file.refusal([&](Crafted& f) {
    with_input(f, [](json& input) { input[1] = {2, 4, 36, 1}; });
  });
  BOOST_TEST(has(other, "its residual is f32 of shape (2, 4, 36, 1), but its result f32 of shape"),
             other);
  const std::string text = file.refusal([&](Crafted& f) {
    f.node("conv2d")["attributes"].push_back(json::array({"residual", "text", "x"}));
  });
  BOOST_TEST(has(text, "conv2d"), text);
  if (prefers_onednn()) return;
  with_input(file, [](json&) {});
  const Tensor h = net.bn2(net.conv2(relu(net.bn1(net.conv1(x) + x))));
  BOOST_TEST(same_bits(run(), relu(h + x)));
}

BOOST_AUTO_TEST_SUITE_END()
