// What every module can do with what it is made of.
#include <tuple>
#include <variant>

#include <tenon/core/autograd/autograd.h>
#include <tenon/modules/activation.h>
#include <tenon/modules/dropout.h>
#include <tenon/modules/embedding.h>
#include <tenon/modules/init.h>
#include <tenon/modules/linear.h>
#include <tenon/modules/norm.h>
#include <tenon/modules/optim/sgd.h>
#include <tenon/modules/sequential.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(module_test)

using namespace tenon;
using namespace tenon::test;

namespace {

struct Net : nn::Module<Net> {
  nn::Linear fc1{4, 3};
  nn::BatchNorm1d norm{3};
  nn::Dropout drop{0.5};
  nn::Linear fc2{3, 2};
  nn::Buffer offset{zeros({2})};
  nn::Buffer scratch{zeros({2}), {.persistent = false}};
  bool training = true;
  Tensor forward(const Tensor& x) { return fc2(drop(norm(fc1(x)))) + offset; }
};

std::string keys(const nn::StateDict& dict) {
  std::string text;
  for (auto& key : dict.keys()) text += (text.empty() ? "" : " ") + key;
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(state_dict_has_pytorchs_keys_in_order) {
  Net net;
  BOOST_TEST(keys(net.state_dict()) ==
             "offset fc1.weight fc1.bias norm.weight norm.bias norm.running_mean norm.running_var "
             "norm.num_batches_tracked "
             "fc2.weight fc2.bias");
  BOOST_TEST(net.num_parameters() == 4 * 3 + 3 + 3 + 3 + 3 * 2 + 2);
  BOOST_TEST(net.buffers().size() == 5u);
  auto dict = net.state_dict();
  BOOST_TEST(!dict.at("fc1.weight").requires_grad());
  no_grad([&] { net.fc1.weight.fill_(7); });
  require_values(dict.at("fc1.weight").select(0, 0), {4},
                 {7, 7, 7, 7});  // it shares the model's values
  require_error<StateDictError>([&] { dict.at("fc3.weight"); },
                                "there is no key \"fc3.weight\" among its 10: \"offset\"");
}

BOOST_AUTO_TEST_CASE(state_dicts_keep_their_order) {
  nn::StateDict dict{{"b", ones({1})}, {"a", ones({2})}};
  dict.set("c", ones({3}));
  dict.set("b", ones({4}));
  BOOST_TEST(keys(dict) == "b a c");
  BOOST_TEST(dict.at("b").numel() == 4);
  BOOST_TEST(dict.erase("a"));
  BOOST_TEST(!dict.erase("a"));
  BOOST_TEST(keys(dict) == "b c");
  BOOST_TEST(dict.at("c").numel() == 3);
  require_error<StateDictError>(
      [] {
        nn::StateDict({{"x", Tensor()}, {"x", Tensor()}});
      },
      "the key \"x\" is given twice");
}

BOOST_AUTO_TEST_CASE(train_and_eval_reach_every_level) {
  Net net;
  net.eval();
  BOOST_TEST((!net.training && !net.drop.training && !net.norm.training));
  net.train();
  BOOST_TEST((net.training && net.drop.training && net.norm.training));
}

BOOST_AUTO_TEST_CASE(a_model_moves_under_its_optimizer) {
  Net net;
  optim::SGD opt(net.parameters(), {.lr = 1});
  Tensor handle = net.fc2.bias;
  net.to("cpu:1");
  for (auto& [name, t] : net.named_parameters()) BOOST_TEST(t.device().str() == "cpu:1");
  for (auto& [name, t] : net.named_buffers()) BOOST_TEST(t.device().str() == "cpu:1");
  BOOST_TEST(handle.is_same(net.fc2.bias));
  BOOST_TEST(handle.requires_grad());
  net.eval();
  Tensor before = handle.detach().clone();
  net(ones({2, 4}, {.device = "cpu:1"})).sum().backward();
  BOOST_TEST(handle.grad().device().str() == "cpu:1");
  opt.step();
  require_equal(handle.detach(), before - 2.0, 1e-6);
  net.to("cpu:0");
  BOOST_TEST(handle.grad().device().str() == "cpu:0");
}

BOOST_AUTO_TEST_CASE(only_floating_tensors_change_type) {
  Net net;
  net.to(f64);
  BOOST_TEST((net.fc1.weight.dtype() == f64));
  BOOST_TEST((net.norm.running_mean.dtype() == f64));
  BOOST_TEST((net.norm.num_batches_tracked.dtype() == i64));
  BOOST_TEST((net(ones({2, 4}, {.dtype = f64})).dtype() == f64));
  require_error<DTypeError>([&] { net.to(i64); }, "parameters cannot become i64");
}

BOOST_AUTO_TEST_CASE(shared_parameters_are_one) {
  struct Tied : nn::Module<Tied> {
    nn::Linear encoder{3, 3, {.bias = false}}, decoder{3, 3, {.bias = false}};
    Tensor forward(const Tensor& x) { return decoder(encoder(x)); }
  };
  Tied net;
  net.decoder.weight = net.encoder.weight;
  BOOST_TEST(net.parameters().size() == 1u);
  BOOST_TEST(net.num_parameters() == 9);
  BOOST_TEST(keys(net.state_dict()) == "encoder.weight decoder.weight");
  net.to(f64);
  BOOST_TEST(net.decoder.weight.is_same(net.encoder.weight));
  Tied copy = net, apart = nn::clone(net);
  BOOST_TEST(copy.encoder.weight.is_same(net.encoder.weight));
  BOOST_TEST(!apart.encoder.weight.is_same(net.encoder.weight));
  BOOST_TEST(apart.encoder.weight.is_same(apart.decoder.weight));
  require_equal(apart.encoder.weight.detach(), net.encoder.weight.detach());
}

BOOST_AUTO_TEST_CASE(clones_share_nothing) {
  auto fc = std::make_shared<nn::Linear>(2, 2);
  nn::Sequential net{nn::AnyModule(fc).as<nn::Linear>() ? nn::Sequential({{"a", fc}, {"b", fc}})
                                                        : nn::Sequential()};
  nn::Sequential copy = nn::clone(net);
  BOOST_TEST(copy[0].as<nn::Linear>() != fc.get());
  BOOST_TEST(copy[0].as<nn::Linear>() == copy[1].as<nn::Linear>());
  Tensor original = fc->weight.detach().clone();
  nn::init::zeros_(copy[0].as<nn::Linear>()->weight);
  require_equal(fc->weight.detach(), original);
  BOOST_TEST(copy.parameters()[0].requires_grad());
}

BOOST_AUTO_TEST_CASE(gradients_are_dropped_or_zeroed) {
  nn::Linear fc(2, 1);
  fc(ones({1, 2})).sum().backward();
  require_values(fc.bias.grad(), {1}, {1});
  fc.zero_grad(false);
  require_values(fc.bias.grad(), {1}, {0});
  fc.zero_grad();
  BOOST_TEST(!fc.bias.grad().defined());
  fc.requires_grad_(false);
  BOOST_TEST(!fc(ones({1, 2})).requires_grad());
}

BOOST_AUTO_TEST_CASE(apply_goes_bottom_up) {
  Net net;
  std::string order;
  net.apply([&](nn::ModuleRef m) {
    order += std::string(m.type->name) + " ";
    if (auto* fc = m.as<nn::Linear>()) nn::init::constant_(fc->bias, 5);
  });
  BOOST_TEST(order == "Linear BatchNorm1d Dropout Linear Net ");
  require_values(net.fc2.bias.detach(), {2}, {5, 5});
  auto modules = net.named_modules();
  BOOST_TEST_REQUIRE(modules.size() == 5u);
  BOOST_TEST(modules[0].name == "");
  BOOST_TEST(modules[4].name == "fc2");
}

BOOST_AUTO_TEST_CASE(parameters_and_buffers_are_leaves) {
  Tensor x = ones({2});
  x.requires_grad_();
  nn::Parameter p = x * 2;
  BOOST_TEST((p.is_leaf() && p.requires_grad()));
  nn::Buffer b(x * 2, {.persistent = false});
  BOOST_TEST(!b.requires_grad());
  b = x * 3;
  BOOST_TEST((!b.requires_grad() && !b.persistent()));
  BOOST_TEST(!nn::Parameter().defined());
}

BOOST_AUTO_TEST_CASE(forward_takes_and_returns_what_it_likes) {
  struct Two : nn::Module<Two> {
    nn::Linear fc{2, 1};
    std::pair<Tensor, int> forward(const Tensor& a, const Tensor& b, int times = 2) {
      return {fc(a + b), times};
    }
  };
  Two net;
  auto [y, times] = net(ones({1, 2}), ones({1, 2}));
  BOOST_TEST(times == 2);
  BOOST_TEST(net(ones({1, 2}), ones({1, 2}), 7).second == 7);
  const nn::Linear constant(2, 1);
  BOOST_TEST(constant(ones({3, 2})).shape() == (Shape{3, 1}));
}

BOOST_AUTO_TEST_CASE(errors_name_the_module) {
  struct Body : nn::Module<Body> {
    std::vector<nn::Linear> blocks = nn::repeat(2, [] { return nn::Linear(4, 4); });
    nn::Sequential tail{nn::Linear(4, 5), nn::Linear(4, 4)};
    int fail_in = 0;
    Tensor forward(const Tensor& x) {
      Tensor wrong = ones({1, 9});
      return fail_in == 1 ? blocks[1](wrong) : fail_in == 2 ? tail(x) : x;
    }
  };
  struct Outer : nn::Module<Outer> {
    std::unique_ptr<Body> body = std::make_unique<Body>();
    nn::Linear first{4, 4};
    Tensor forward(const Tensor& x) { return (*body)(first(x)); }
  };
  Outer net;
  Tensor x = ones({1, 4});
  net(x);
  require_error<ShapeError>([&] { net.first(ones({1, 9})); }, "(in module Linear)");
  require_error<ShapeError>([&] { net(ones({1, 9})); }, "(in module Outer.first)");
  net.body->fail_in = 1;
  require_error<ShapeError>([&] { net(x); }, "(in module Outer.body.blocks.1)");
  net.body->fail_in = 2;
  require_error<ShapeError>([&] { net(x); }, "(in module Outer.body.tail.1)");
  require_error<ShapeError>([&] { net(x); }, "(in module Outer.body.tail.1)");
}

// Errors that a layer throws itself, not one of its operators, name it as well; so does what a
// user's forward throws.
BOOST_AUTO_TEST_CASE(errors_of_layers_name_the_module_too) {
  struct Net : nn::Module<Net> {
    nn::BatchNorm1d one{3};
    nn::BatchNorm2d two{3};
    nn::LayerNorm layer{3};
    int call = 0;
    Tensor forward(const Tensor& x) {
      if (call == 3) throw ValueError("no such call\nsee the list");
      return call == 0 ? one(x) : call == 1 ? two(x) : layer(x);
    }
  };
  Net net;
  const Tensor wrong = ones({5});
  require_error<ShapeError>([&] { net(wrong); }, "got one of shape (5,) (in module Net.one)");
  net.call = 1;
  require_error<ShapeError>([&] { net(wrong); }, "got one of shape (5,) (in module Net.two)");
  net.call = 2;
  require_error<ShapeError>([&] { net(wrong); }, "(in module Net.layer)");
  net.call = 3;
  require_error<ValueError>([&] { net(wrong); }, "no such call (in module Net)\nsee the list");
  require_error<ShapeError>([&] { net.one.forward(wrong); },
                            "BatchNorm1d: expected an input of shape (N, C)");
}

BOOST_AUTO_TEST_CASE(a_parameter_on_another_device_is_named) {
  struct Net : nn::Module<Net> {
    nn::Linear fc{4, 3};
    Tensor forward(const Tensor& x) { return fc(x); }
  };
  Net net;
  net.to("cpu:1");
  require_error<DeviceError>(
      [&] {
        net(ones({2, 4}));
      },
      "linear: the input is on cpu:0, but the parameters of Linear are on cpu:1 (weight, f32 "
      "of shape (3, 4), "
      "is \"weight\"); move the input with .to(\"cpu:1\"), or the model with .to(\"cpu:0\") (in "
      "module Net.fc)");
  // A module on several devices: it is the parameter that has to move.
  net.fc.bias = net.fc.bias.detach().to("cpu:0");
  require_error<DeviceError>(
      [&] {
        net(ones({2, 4}));
      },
      "linear: weight, f32 of shape (3, 4), is on cpu:1, but the operator");
  require_error<DeviceError>(
      [&] {
        net(ones({2, 4}));
      },
      "(in module Net.fc); the argument is \"weight\" of Linear, whose parameters are on several "
      "devices");
}

// Whichever comes first in the operator's list decides where it runs: the weight of an embedding,
// the input of a sum.
BOOST_AUTO_TEST_CASE(an_input_on_another_device_is_named) {
  struct Net : nn::Module<Net> {
    nn::Embedding table{5, 2};
    nn::Parameter shift = zeros({2});
    bool first = true;
    Tensor forward(const Tensor& x) {
      return x.dtype() == i64 ? table(x) : first ? shift + x : x + shift;
    }
  };
  Net net;
  net.to("cpu:1");
  require_error<DeviceError>([&] { net(zeros({3}, {.dtype = i64})); },
                             "embedding: the input (indices, i64 of shape (3,)) is on cpu:0, "
                             "but the parameters of Embedding are on "
                             "cpu:1; move the input with .to(\"cpu:1\"), or the model with "
                             ".to(\"cpu:0\") (in module Net.table)");
  require_error<DeviceError>([&] { net(ones({2})); },
                             "add: the input (b, f32 of shape (2,)) is on cpu:0, but the "
                             "parameters of Net are on cpu:1;");
  net.first = false;
  require_error<DeviceError>([&] { net(ones({2})); },
                             "add: the input is on cpu:0, but the parameters of Net are on cpu:1 "
                             "(b, f32 of shape (2,), is \"shift\");");
  BOOST_TEST(net(ones({2}, {.device = "cpu:1"})).device() == Device("cpu:1"));
  // Without a module there is nobody to ask whose input it is.
  require_error<DeviceError>([&] { ones({2}) + ones({2}, {.device = "cpu:1"}); },
                             "add: b, f32 of shape (2,), is on cpu:1, but");
}

namespace {
struct Named : nn::Module<Named> {
  int64_t hidden = 5;
  nn::Linear fc1{4, hidden}, fc2{hidden, 2};
  Tensor forward(const Tensor& x) { return fc2(fc1(x)); }
};
struct Constructed : nn::Module<Constructed> {
  static constexpr int num_fields = 4;
  nn::Linear fc1, fc2;
  bool training = true;
  int64_t calls = 0;
  explicit Constructed(int64_t hidden) : fc1(4, hidden), fc2(hidden, 2) {}
  Tensor forward(const Tensor& x) { return ++calls, fc2(fc1(x)); }
};
}  // namespace

// GCC 12 takes the empty base for a field that was forgotten.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
BOOST_AUTO_TEST_CASE(modules_with_arguments_need_no_list) {
  Named usual, narrow{.hidden = 3};
  BOOST_TEST((usual.fc1.weight.shape() == Shape{5, 4}));
  BOOST_TEST((narrow(ones({1, 4})).shape() == Shape{1, 2}));
  BOOST_TEST(keys(narrow.state_dict()) == "fc1.weight fc1.bias fc2.weight fc2.bias");
  BOOST_TEST((narrow.fc2.weight.shape() == Shape{2, 3}));

  Constructed net(3);
  BOOST_TEST(keys(net.state_dict()) == "fc1.weight fc1.bias fc2.weight fc2.bias");
  net.eval();
  BOOST_TEST(!net.training);
  require_error<ShapeError>([&] { net(ones({1, 9})); }, "(in module Constructed.fc1)");
}

#pragma GCC diagnostic pop

BOOST_AUTO_TEST_CASE(copies_are_tied_and_repeated_modules_are_not) {
  struct Stack : nn::Module<Stack> {
    std::vector<nn::Linear> layers;
  };
  Stack copies{{}, std::vector<nn::Linear>(3, nn::Linear(2, 2))};
  Stack apart{{}, nn::repeat(3, [] { return nn::Linear(2, 2); })};
  BOOST_TEST(copies.parameters().size() == 2u);
  BOOST_TEST(apart.parameters().size() == 6u);
  BOOST_TEST(copies.state_dict().size() == 6u);
  auto growing = nn::repeat(2, [](int64_t i) { return nn::Linear(i + 1, i + 2); });
  BOOST_TEST((growing[1].weight.shape() == Shape{3, 2}));
  require_error<ValueError>([] { nn::repeat(-1, [] { return nn::Linear(1, 1); }); },
                            "repeat: -1 modules");
  for (int64_t many : {(int64_t{1} << 24) + 1, int64_t{1'000'000'000'000'000'000}})
    require_error<ValueError>(
        [&] { nn::repeat(many, [] { return nn::ReLU(); }); },
        "repeat: " + std::to_string(many) +
            " modules cannot be made; it must be a number from 0 to 16777216");

  const std::string linear = "Linear(in_features=2, out_features=2, bias=True)";
  BOOST_TEST(nn::str(apart) ==
             "Stack(\n  (layers): ModuleList(\n    (0-2): 3 x " + linear + "\n  )\n)");
  BOOST_TEST(nn::str(copies) == "Stack(\n  (layers): ModuleList(\n    (0): " + linear +
                                    "\n    (1-2): 2 x " + linear +
                                    "  # weight, bias shared with layers.0\n  )\n)");
}

// What a module returns may be anything, also types that have a std::get of their own.
BOOST_AUTO_TEST_CASE(results_of_any_type) {
  struct Either : nn::Module<Either> {
    std::variant<Tensor, int> forward(bool number) {
      return number ? std::variant<Tensor, int>(3) : ones({2});
    }
  } either;
  BOOST_TEST(std::get<int>(either(true)) == 3);
  BOOST_TEST(std::get<Tensor>(either(false)).numel() == 2);
  struct Nothing : nn::Module<Nothing> {
    std::tuple<> forward() { return {}; }
  } nothing;
  BOOST_TEST((nothing() == std::tuple<>()));
}

// A module that derives from another would run the other's forward.
static_assert(std::is_final_v<nn::Linear> && std::is_final_v<nn::Sequential> &&
              std::is_final_v<nn::BatchNorm2d>);

BOOST_AUTO_TEST_SUITE_END()
